package testproxy_test

import (
	"io"
	"net/http"
	"testing"

	"github.com/sluicehq/sluice/internal/testproxy"
)

func TestProxies_AnswerWhenTheCallReturns(t *testing.T) {
	t.Parallel()
	nginx := testproxy.Nginx(t, func(listen, _ string) string {
		return "server { listen " + listen + "; location / { return 200 hello; } }"
	})
	caddy := testproxy.Caddy(t, func(listen string) string { return "http://" + listen + " {\n\trespond hello\n}\n" })
	for _, p := range []*testproxy.Proxy{nginx, caddy} {
		res, err := http.Get("http://" + p.Addr)
		if err != nil {
			t.Fatal(err)
		}
		body, _ := io.ReadAll(res.Body)
		res.Body.Close()
		if string(body) != "hello" {
			t.Errorf("%s %q", res.Status, body)
		}
		p.Stop()
		p.Stop()
		if _, err := http.Get("http://" + p.Addr); err == nil { //nolint:bodyclose // it fails
			t.Error("it still answers")
		}
	}
}
