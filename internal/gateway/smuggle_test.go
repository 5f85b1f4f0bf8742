package gateway_test

import (
	"context"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sluicehq/sluice/internal/config"
	"github.com/sluicehq/sluice/internal/gateway/smuggle"
	"github.com/sluicehq/sluice/internal/testproxy"
)

func TestGateway_SmugglesNothingPastAStrictUpstream(t *testing.T) {
	t.Parallel()
	u, err := smuggle.Listen()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(u.Close)
	cases := attack(t, "http://"+u.Addr())
	u.Close()
	targets, faults := u.Take()
	judge(t, cases, targets)
	for _, f := range faults {
		t.Errorf("the upstream cannot read: %s", f)
	}
}

func TestGateway_SmugglesNothingPastNetHTTP(t *testing.T) {
	t.Parallel()
	u := newUpstream(t, nil)
	cases := attack(t, u.URL)
	u.Close()
	var targets []string
	for _, r := range u.requests() {
		targets = append(targets, r.URL.Path)
	}
	judge(t, cases, targets)
}

func TestGateway_SmugglesNothingPastNginx(t *testing.T) {
	t.Parallel()
	nginx := testproxy.Nginx(t, func(listen, dir string) string {
		return `log_format targets '$status $uri';
server { listen ` + listen + `; access_log ` + dir + `/access.log targets; location / { return 200 ok; } }`
	})
	cases := attack(t, "http://"+nginx.Addr)
	nginx.Stop()
	text, err := os.ReadFile(filepath.Join(nginx.Dir, "access.log"))
	if err != nil {
		t.Fatal(err)
	}
	var targets []string
	for line := range strings.Lines(string(text)) {
		status, target, _ := strings.Cut(strings.TrimSpace(line), " ")
		switch status {
		case "200":
			targets = append(targets, target)
		case "400": // nginx read something that is no request; a cut connection is logged so, too, if its head was whole
			if target == "" || target == "-" {
				t.Errorf("nginx could not read: %s", line)
			}
		}
	}
	judge(t, cases, targets)
}

// attack sends the corpus through a gateway to an upstream and returns when nothing is under way any more.
func attack(t *testing.T, upstream string) []smuggle.Case {
	t.Helper()
	b := newBed(t, setup{gateway: func(c *config.Gateway) { c.Upstreams[0].URL = upstream }})
	cases := smuggle.Corpus()
	for _, c := range cases {
		codes, err := c.Send(t.Context(), b.addr)
		if err != nil {
			t.Fatal(err)
		}
		for _, code := range codes {
			if code >= http.StatusInternalServerError && code != http.StatusNotImplemented && code != http.StatusHTTPVersionNotSupported {
				t.Errorf("%s: answers %v, want the client to be blamed", c.Name, codes)
			}
		}
	}
	if err := b.server.Shutdown(context.WithoutCancel(t.Context())); err != nil {
		t.Fatal(err)
	}
	return cases
}

func judge(t *testing.T, cases []smuggle.Case, targets []string) {
	t.Helper()
	if len(cases) < 80 || len(targets) < len(cases)/3 {
		t.Errorf("%d cases, of which %d requests came through: the corpus does not show much", len(cases), len(targets))
	}
	for _, err := range smuggle.Judge(cases, targets) {
		t.Error(err)
	}
}
