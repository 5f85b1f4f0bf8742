package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// client asks a running node.
type client struct {
	url                       string
	admin                     bool // the token is sent
	caFile, certFile, keyFile string
	output                    form

	context   string // named by --context
	flags     *pflag.FlagSet
	tokenFile string // the context's
	namespace string // the context's
	resolved  bool
}

// dataFlags are for commands that ask the data listener.
func (c *client) dataFlags(cmd *cobra.Command) {
	cmd.Flags().StringVar(&c.url, "server", envOr("SLUICE_SERVER", "http://127.0.0.1:8080"), "the node's HTTP listener, or SLUICE_SERVER")
	c.commonFlags(cmd, "text", "json")
}

// adminFlags are for commands that ask the admin listener. The token is no flag: the process list would show it.
func (c *client) adminFlags(cmd *cobra.Command) { c.adminForms(cmd, "text", "json") }

// adminForms is adminFlags with other forms of the answer, the default first.
func (c *client) adminForms(cmd *cobra.Command, forms ...string) {
	cmd.Flags().StringVar(&c.url, "admin", envOr("SLUICE_ADMIN", "http://127.0.0.1:9090"), "the node's admin listener, or SLUICE_ADMIN")
	c.admin = true
	c.commonFlags(cmd, forms...)
}

// token reads the admin token where a node reads its own; empty: none, and the node says what is missing.
func (c *client) token() (string, error) {
	token, path, origin := os.Getenv("SLUICE_ADMIN__TOKEN"), os.Getenv("SLUICE_ADMIN__TOKEN_FILE"), "SLUICE_ADMIN__TOKEN_FILE"
	if c.tokenFile != "" {
		token, path, origin = "", c.tokenFile, "token_file of the context"
	}
	if token != "" || path == "" {
		return token, nil
	}
	text, err := os.ReadFile(filepath.Clean(path))
	if err != nil {
		return "", fmt.Errorf("%s: %w", origin, err)
	}
	return strings.TrimSpace(string(text)), nil
}

func (c *client) commonFlags(cmd *cobra.Command, forms ...string) {
	c.flags = cmd.Flags()
	cmd.Flags().StringVar(&c.context, "context", "", "the cluster to ask, or SLUICE_CONTEXT; see sluice context --help")
	_ = cmd.RegisterFlagCompletionFunc("context", completeContextFlag)
	cmd.Flags().StringVar(&c.caFile, "ca-file", "", "certificates that sign the node's own; default: the system's")
	cmd.Flags().StringVar(&c.certFile, "cert-file", "", "certificate to show to a node that asks for one")
	cmd.Flags().StringVar(&c.keyFile, "key-file", "", "the key of --cert-file")
	c.output.addTo(cmd, forms...)
}

// answerTimeout bounds everything but streams.
const answerTimeout = 10 * time.Second

// ask sends body as JSON, or nothing, and returns the answer. A problem is an error, a refusal is not.
func (c *client) ask(ctx context.Context, method, path string, body any) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	resp, err := c.open(ctx, method, path, body)
	if err != nil {
		return nil, err
	}
	defer func() { _ = resp.Body.Close() }()
	answer, err := io.ReadAll(io.LimitReader(resp.Body, 16<<20))
	if err != nil {
		return nil, fmt.Errorf("read the answer of %s: %w", c.url, err)
	}
	if strings.HasPrefix(resp.Header.Get("Content-Type"), "application/problem+json") {
		return nil, problemError(resp.StatusCode, answer)
	}
	return answer, nil
}

// open sends a request and returns the response, whose body the caller closes.
func (c *client) open(ctx context.Context, method, path string, body any) (*http.Response, error) {
	var text []byte
	if body != nil {
		var err error
		if text, err = json.Marshal(body); err != nil {
			return nil, fmt.Errorf("write the request: %w", err)
		}
	}
	req, err := c.request(ctx, method, path, bytes.NewReader(text))
	if err != nil {
		return nil, err
	}
	return c.send(req)
}

// request makes a request for the node, with a body of JSON.
func (c *client) request(ctx context.Context, method, path string, body io.Reader) (*http.Request, error) {
	if err := c.resolve(); err != nil {
		return nil, err
	}
	req, err := http.NewRequestWithContext(ctx, method, strings.TrimSuffix(c.url, "/")+path, body)
	if err != nil {
		return nil, usageError{fmt.Errorf("%q is no address: %w", c.url, err)}
	}
	req.Header.Set("Content-Type", "application/json")
	return req, c.authorize(req)
}

// send sends it and returns the response, whose body the caller closes.
func (c *client) send(req *http.Request) (*http.Response, error) {
	httpClient, err := c.http()
	if err != nil {
		return nil, err
	}
	resp, err := httpClient.Do(req)
	if err != nil {
		return nil, fmt.Errorf("%w: %s", err, c.hint())
	}
	return resp, nil
}

// hint is what usually helps where no answer came.
func (c *client) hint() string {
	if strings.HasPrefix(c.url, "https:") {
		return "is a node running there (sluice serve), and do --ca-file, --cert-file and --key-file fit it?"
	}
	return "is a node running there? (sluice serve)"
}

// authorize adds the token to a request for the admin listener.
func (c *client) authorize(req *http.Request) error {
	if !c.admin {
		return nil
	}
	token, err := c.token()
	if err == nil && token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	return err
}

func (c *client) http() (*http.Client, error) {
	cfg := &tls.Config{MinVersion: tls.VersionTLS12}
	if c.caFile != "" {
		text, err := os.ReadFile(c.caFile)
		if err != nil {
			return nil, fmt.Errorf("--ca-file: %w", err)
		}
		cfg.RootCAs = x509.NewCertPool()
		if !cfg.RootCAs.AppendCertsFromPEM(text) {
			return nil, fmt.Errorf("--ca-file: %s holds no certificate: want PEM", c.caFile)
		}
	}
	if c.certFile != "" || c.keyFile != "" {
		pair, err := tls.LoadX509KeyPair(c.certFile, c.keyFile)
		if err != nil {
			return nil, fmt.Errorf("--cert-file and --key-file: %w", err)
		}
		cfg.Certificates = []tls.Certificate{pair}
	}
	transport := http.DefaultTransport.(*http.Transport).Clone() // with the proxy that the environment names
	transport.TLSClientConfig = cfg
	transport.Protocols = new(http.Protocols)
	transport.Protocols.SetHTTP1(true) // a certificate that a node misses is told by its name; over HTTP/2 it is not
	return &http.Client{Transport: transport}, nil
}

// problemError makes an error of a problem document.
func problemError(status int, text []byte) error {
	var p struct {
		Title  string `json:"title"`
		Detail string `json:"detail"`
		Errors []struct {
			Pointer string `json:"pointer"`
			Detail  string `json:"detail"`
		} `json:"errors"`
	}
	if err := json.Unmarshal(text, &p); err != nil || p.Title == "" {
		return nodeError{status, fmt.Sprintf("the node answered %d", status)}
	}
	message := p.Title
	if p.Detail != "" {
		message += ": " + p.Detail
	}
	for _, e := range p.Errors {
		message += fmt.Sprintf("\n  %s: %s", strings.TrimPrefix(e.Pointer, "#/"), e.Detail)
	}
	return nodeError{status, message}
}

// nodeError is what a node said it could not do.
type nodeError struct {
	status  int
	message string
}

func (e nodeError) Error() string { return e.message }

func envOr(name, otherwise string) string {
	if v := os.Getenv(name); v != "" {
		return v
	}
	return otherwise
}
