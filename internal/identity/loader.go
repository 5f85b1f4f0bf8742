package identity

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
)

// maxKeySetSize is above any issuer's real key set: a hundred keys, certificates included, come close.
const maxKeySetSize = 64 << 10

// urlLoader fetches keys. It follows no redirect: the configuration says whose keys are believed, not the answer.
func urlLoader(text string, client *http.Client) (func(context.Context) ([]byte, error), error) {
	u, err := url.Parse(text)
	if err != nil {
		return nil, fmt.Errorf("jwks_url: %w", err)
	}
	if err := checkKeyURL(u); err != nil {
		return nil, err
	}
	direct := http.Client{Timeout: loadTimeout}
	if client != nil {
		direct = *client
	}
	direct.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return func(ctx context.Context) ([]byte, error) { return fetch(ctx, &direct, u) }, nil
}

func fetch(ctx context.Context, client *http.Client, u *url.URL) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), http.NoBody)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Accept", "application/json")
	resp, err := client.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("fetch %s: answered %s: jwks_url must name where the keys are", u.Redacted(), resp.Status)
	}
	return readKeySet(resp.Body)
}

func fileLoader(path string) func(context.Context) ([]byte, error) {
	return func(context.Context) ([]byte, error) {
		f, err := os.Open(path) //nolint:gosec // the operator names the file
		if err != nil {
			return nil, fmt.Errorf("jwks_file: %w", err)
		}
		defer f.Close()
		return readKeySet(f)
	}
}

func readKeySet(r io.Reader) ([]byte, error) {
	raw, err := io.ReadAll(io.LimitReader(r, maxKeySetSize+1))
	if err == nil && len(raw) > maxKeySetSize {
		err = fmt.Errorf("the key set is larger than %d bytes", maxKeySetSize)
	}
	return raw, err
}
