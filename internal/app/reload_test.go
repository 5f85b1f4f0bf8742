package app_test

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/sluicehq/sluice/internal/testnode"
)

// named starts an upstream that tells its name.
func named(t *testing.T, name string) string {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(name)) }))
	t.Cleanup(s.Close)
	return s.URL
}

func routeTo(url string) string {
	return fmt.Sprintf("[[gateway.upstream]]\nname = \"u\"\nurl = %q\n[[gateway.route]]\nupstream = \"u\"\n", url)
}

// wantReload waits until a changed configuration was taken or refused n times.
func wantReload(t *testing.T, node *testnode.Node, message string, n int) {
	t.Helper()
	eventually(t, patience, message, func() error {
		if got := strings.Count(node.Log(), message); got < n {
			return fmt.Errorf("told %d times in the log", got)
		}
		return nil
	})
}

func TestReload_SIGHUPReadsEverythingAgain(t *testing.T) {
	t.Parallel()
	node := testnode.Start(t, testnode.Options{Config: inMemory, Rules: usersRule})
	for n := range 3 {
		node.Signal(syscall.SIGHUP)
		wantReload(t, node, "configuration reloaded", n+1)
	}
	wantLimit(t, node, "after", 3)
}

func TestReload_RoutesIdentityAndLogLevelActLive(t *testing.T) {
	t.Parallel()
	node := testnode.Start(t, testnode.Options{Gateway: true, Rules: usersRule, Config: inMemory + routeTo(named(t, "one"))})
	ask := func() string {
		return mustRequest(t, http.MethodGet, "http://"+node.Gateway+"/", "", "X-User", "ann").body
	}
	if got := ask(); got != "one" {
		t.Fatalf("the upstream said %q, want one", got)
	}
	node.WriteConfig(inMemory + routeTo(named(t, "two")) + `
[identity]
trusted_proxies = ["127.0.0.0/8"]
headers = { user = "X-User" }
[answers]
headers = ["ietf"]
[log]
level = "debug"
`)
	wantReload(t, node, "configuration reloaded", 1)
	for n := range 4 {
		want := map[bool]string{true: "two", false: ""}[n < 3]
		if got := ask(); want != "" && got != want || want == "" && got == "two" {
			t.Errorf("request %d of one user: the upstream said %q, want %q", n+1, got, want)
		}
	}
	d, a := check(t, node, "bob")
	if !d.Allowed || a.header.Get("X-Ratelimit-Limit") != "" || a.header.Get("Ratelimit") == "" {
		t.Errorf("the check API's headers are %v, want only those of the IETF", a.header)
	}
	if got := statusOf(t, node).RestartNeeded; len(got) != 0 {
		t.Errorf("a restart is needed for %v, want none", got)
	}
}

func TestReload_TheProxyProtocolActsLive(t *testing.T) {
	t.Parallel()
	upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = w.Write([]byte(r.Header.Get("X-Forwarded-For")))
	}))
	t.Cleanup(upstream.Close)
	node := testnode.Start(t, testnode.Options{Gateway: true, Config: inMemory + routeTo(upstream.URL)})
	if a := mustRequest(t, http.MethodGet, "http://"+node.Gateway+"/", ""); a.body != "127.0.0.1" {
		t.Fatalf("the upstream heard of %q, want 127.0.0.1", a.body)
	}
	node.WriteConfig(inMemory + routeTo(upstream.URL) + "[identity]\ntrusted_proxies = [\"127.0.0.0/8\"]\nproxy_protocol = true\n")
	wantReload(t, node, "configuration reloaded", 1)
	if got := statusOf(t, node).RestartNeeded; len(got) != 0 {
		t.Errorf("a restart is needed for %v, want none", got)
	}
	balancer := &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := new(net.Dialer).DialContext(ctx, network, address)
		if err == nil {
			_, err = conn.Write([]byte("PROXY TCP4 192.0.2.7 127.0.0.1 40000 80\r\n"))
		}
		return conn, err
	}}}
	defer balancer.CloseIdleConnections()
	if a, err := request(t, balancer, http.MethodGet, "http://"+node.Gateway+"/", ""); err != nil || !strings.HasPrefix(a.body, "192.0.2.7") {
		t.Errorf("the upstream heard of %q, %v, want 192.0.2.7", a.body, err)
	}
}

func TestReload_WhatNeedsARestartIsNamedUntilItIsTakenBack(t *testing.T) {
	t.Parallel()
	node := testnode.Start(t, testnode.Options{Config: inMemory, Rules: usersRule})
	node.WriteConfig(strings.Replace(inMemory, "memory", "redis://127.0.0.1:1", 1) + "[gateway]\nlisten = \"127.0.0.1:0\"\n" + routeTo("http://127.0.0.1:1"))
	wantReload(t, node, "configuration reloaded", 1)
	if got := statusOf(t, node).RestartNeeded; !slices.Equal(got, []string{"gateway.listen", "redis.url"}) {
		t.Errorf("a restart is needed for %v, want gateway.listen and redis.url", got)
	}
	if d, _ := check(t, node, "ann"); d.Mode != "exact" {
		t.Errorf("got %+v, want the old store", d)
	}
	node.Signal(syscall.SIGHUP)
	wantReload(t, node, "configuration reloaded", 2)
	if got := statusOf(t, node).RestartNeeded; len(got) != 2 {
		t.Errorf("read again, a restart is needed for %v, want the same two", got)
	}
	node.WriteConfig(inMemory)
	wantReload(t, node, "configuration reloaded", 3)
	if got := statusOf(t, node).RestartNeeded; len(got) != 0 {
		t.Errorf("taken back, a restart is needed for %v, want none", got)
	}
}

func TestReload_TheGatewayGoesOnWhenItsListenerIsTakenOutOfTheFile(t *testing.T) {
	t.Parallel()
	upstream := named(t, "here")
	config := inMemory + "[gateway]\nlisten = \"127.0.0.1:0\"\n" + routeTo(upstream)
	node := testnode.Start(t, testnode.Options{Config: config, Rules: usersRule})
	node.WriteConfig(inMemory + routeTo(upstream))
	wantReload(t, node, "configuration reloaded", 1)
	if a := mustRequest(t, http.MethodGet, "http://"+node.Gateway+"/", ""); a.body != "here" {
		t.Errorf("got %d %q, want the upstream's answer until the restart", a.status, a.body)
	}
}

func TestReload_AFaultChangesNothingAndIsTold(t *testing.T) {
	t.Parallel()
	node := testnode.Start(t, testnode.Options{Gateway: true, Rules: usersRule, Config: inMemory + routeTo(named(t, "one"))})
	node.WriteConfig(inMemory + "[log]\nlevel = \"error\"\n[identity]\ntrusted_proxies = [\"nonsense\"]\n")
	wantReload(t, node, "the configuration was not taken", 1)
	if s := statusOf(t, node); !strings.Contains(s.ConfigFault, "sluice.toml:") || !strings.Contains(s.ConfigFault, "trusted_proxies") {
		t.Errorf("the status says %q, want place and field", s.ConfigFault)
	}
	if got := metric(t, node, "sluice_config_reload_failures_total"); got != "1" {
		t.Errorf("sluice_config_reload_failures_total is %q, want 1", got)
	}
	if a := mustRequest(t, http.MethodGet, "http://"+node.Gateway+"/", ""); a.body != "one" {
		t.Errorf("got %d %q, want the last good route", a.status, a.body)
	}
	node.WriteConfig(inMemory)
	wantReload(t, node, "configuration reloaded", 1)
	if s := statusOf(t, node); s.ConfigFault != "" {
		t.Errorf("repaired, the status says %q, want nothing", s.ConfigFault)
	}
}
