package envoyrls_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/sluicehq/sluice/httplimit"
	"github.com/sluicehq/sluice/internal/envoyrls"
)

func TestJSON_AnswersByStatusAndBody(t *testing.T) {
	t.Parallel()
	b := newBed(t, envoyrls.Options{Headers: httplimit.IETF}, byPattern("perday", 1, "descriptor.1"))
	server := httptest.NewServer(b.server.JSON())
	t.Cleanup(server.Close)
	const call = `{"domain": "shop", "descriptors": [{"entries": [{"key": "perday"}]}]}`
	for _, c := range []struct {
		method, body string
		status       int
		want         string
	}{
		{http.MethodPost, call, 200, `"overallCode":"OK"`},
		{http.MethodPost, call, 429, `"overallCode":"OVER_LIMIT"`},
		{http.MethodPost, `{"domain": "shop"}`, 400, "descriptor list must not be empty"},
		{http.MethodPost, `{"domain": "shop", "nonsense": 1}`, 400, "nonsense"},
		{http.MethodPost, `{`, 400, "EOF"},
		{http.MethodPost, strings.Repeat(" ", 65<<10), 413, "too large"},
		{http.MethodGet, "", 405, "POST"},
	} {
		req, err := http.NewRequestWithContext(t.Context(), c.method, server.URL+"/json", strings.NewReader(c.body))
		if err != nil {
			t.Fatal(err)
		}
		response, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		body, _ := io.ReadAll(response.Body)
		_ = response.Body.Close()
		text := strings.ReplaceAll(string(body), `": "`, `":"`) // protojson varies its spaces on purpose
		text = strings.ReplaceAll(text, `":  "`, `":"`)
		if response.StatusCode != c.status || !strings.Contains(text, c.want) {
			t.Errorf("%s %.60s: %d %s, want %d with %s", c.method, c.body, response.StatusCode, body, c.status, c.want)
		}
		if c.status == 429 && (!json.Valid(body) || response.Header.Get("Retry-After") == "") {
			t.Errorf("a refusal has the body %s and the header %v", body, response.Header)
		}
	}
}
