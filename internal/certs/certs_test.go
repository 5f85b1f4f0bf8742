package certs

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sluicehq/sluice/internal/config"
)

// quick looks at the files on every handshake.
const quick = time.Nanosecond

func newServer(t *testing.T, files config.TLS, opts Options) *Server {
	t.Helper()
	s, err := NewServer(files, opts)
	must(t, err)
	return s
}

func newClient(t *testing.T, files ClientFiles) *Client {
	t.Helper()
	c, err := NewClient(files, Options{Every: quick})
	must(t, err)
	return c
}

func TestServer_RotatesUnderLoadWithoutAFailedHandshake(t *testing.T) {
	t.Parallel()
	ca, f := newAuthority(t, "ca"), folder{t, t.TempDir()}
	f.put("ca.pem", ca.pem)
	f.pair(ca.issue(t, 1, time.Hour))
	server := newServer(t, f.tls(true), Options{Every: quick})
	addr := serve(t, server.Config())
	client := newClient(t, f.client())

	var wg sync.WaitGroup
	var handshakes, newest atomic.Int64
	stop := make(chan struct{})
	for range 4 {
		wg.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				serial, err := greet(t.Context(), client, addr)
				if err != nil {
					t.Errorf("handshake: %v", err)
					return
				}
				newest.Store(max(newest.Load(), serial))
				handshakes.Add(1)
			}
		})
	}
	for serial := int64(2); serial <= 6; serial++ {
		f.pair(ca.issue(t, serial, time.Hour)) // written in place, one file after the other
		for end := time.Now().Add(20 * time.Second); newest.Load() < serial || handshakes.Load() < 40*serial; {
			if time.Now().After(end) || t.Failed() {
				t.Fatalf("certificate %d is not in use", serial)
			}
			if _, err := greet(t.Context(), client, addr); err != nil {
				t.Fatalf("handshake: %v", err)
			}
		}
	}
	close(stop)
	wg.Wait()
	t.Logf("%d handshakes", handshakes.Load())
}

func TestServer_KeepsTheLastGoodPair(t *testing.T) {
	t.Parallel()
	ca, f := newAuthority(t, "ca"), folder{t, t.TempDir()}
	f.put("ca.pem", ca.pem)
	f.pair(ca.issue(t, 1, time.Hour))
	reports := make(chan error, 100)
	server := newServer(t, f.tls(false), Options{Every: quick, OnReload: func(err error) { reports <- err }})
	told := func() (all []error) {
		for len(reports) > 0 {
			all = append(all, <-reports)
		}
		return all
	}
	addr := serve(t, server.Config())
	client, err := NewClient(ClientFiles{CAFile: f.path("ca.pem")}, Options{})
	must(t, err)

	otherCert, otherKey := ca.issue(t, 2, time.Hour)
	expiredCert, expiredKey := ca.issue(t, 3, -time.Minute)
	earlyCert, earlyKey := ca.issue(t, 4, 2*time.Hour)
	_, strayKey := ca.issue(t, 5, time.Hour)
	for _, c := range []struct {
		name      string
		cert, key []byte
		want      string
	}{
		{"mismatched", otherCert, strayKey, "private key does not match"},
		{"expired", expiredCert, expiredKey, "expired at"},
		{"not yet valid", earlyCert, earlyKey, "is not valid before"},
		{"half-written", otherCert[:len(otherCert)/2], otherKey, "failed to find"},
		{"empty", nil, nil, "failed to find"},
	} {
		f.put("key.pem", c.key)
		f.put("cert.pem", c.cert)
		for range 3 { // told once, however many handshakes there are
			serial, err := greet(t.Context(), client, addr)
			if err != nil || serial != 1 {
				t.Errorf("%s: got certificate %d and %v, want the first", c.name, serial, err)
			}
		}
		if got := told(); len(got) != 1 || !strings.Contains(got[0].Error(), c.want) {
			t.Errorf("%s: told %v, want once %q", c.name, got, c.want)
		}
	}

	f.pair(otherCert, otherKey)
	if serial, err := greet(t.Context(), client, addr); err != nil || serial != 2 {
		t.Errorf("mended: got certificate %d and %v, want 2", serial, err)
	}
	if got := told(); len(got) != 1 || got[0] != nil {
		t.Errorf("mended: told %v, want once nil", got)
	}
	if !server.NotAfter().After(time.Now()) {
		t.Errorf("NotAfter: got %s", server.NotAfter())
	}
}

func TestServer_RefusesClientsOfAnotherAuthority(t *testing.T) {
	t.Parallel()
	ours, theirs := newAuthority(t, "ours"), newAuthority(t, "theirs")
	here, friend, stranger := folder{t, t.TempDir()}, folder{t, t.TempDir()}, folder{t, t.TempDir()}
	here.put("ca.pem", ours.pem)
	here.pair(ours.issue(t, 1, time.Hour))
	for f, ca := range map[folder]*authority{friend: ours, stranger: theirs} {
		f.put("ca.pem", ours.pem)
		f.pair(ca.issue(t, 2, time.Hour))
	}
	addr := serve(t, newServer(t, here.tls(true), Options{Every: quick}).Config())
	old, other := newClient(t, friend.client()), newClient(t, stranger.client())
	nobody := newClient(t, ClientFiles{CAFile: here.path("ca.pem")})

	expect := func(what string, c *Client, wantOK bool) {
		t.Helper()
		if _, err := greet(t.Context(), c, addr); (err == nil) != wantOK {
			t.Errorf("%s: got %v, want passed %v", what, err, wantOK)
		}
	}
	expect("our client", old, true)
	expect("a client of another authority", other, false)
	expect("a client without certificate", nobody, false)

	here.put("ca.pem", theirs.pem) // the authority is replaced: who was welcome is not, at once
	expect("our client, afterwards", old, false)
	expect("the other's client, afterwards", other, true)
}

func TestClient_FollowsItsFiles(t *testing.T) {
	t.Parallel()
	first, second := newAuthority(t, "first"), newAuthority(t, "second")
	server, client := folder{t, t.TempDir()}, folder{t, t.TempDir()}
	server.put("ca.pem", first.pem)
	server.pair(first.issue(t, 1, time.Hour))
	client.put("ca.pem", first.pem)
	client.pair(first.issue(t, 2, time.Hour))
	addr := serve(t, newServer(t, server.tls(true), Options{Every: quick}).Config())
	c := newClient(t, client.client())
	kept := c.Config() // taken once, as by a Redis client

	if _, err := greet(t.Context(), c, addr); err != nil {
		t.Fatalf("at first: %v", err)
	}
	server.put("ca.pem", second.pem)
	client.pair(second.issue(t, 3, time.Hour))
	if _, err := greet(t.Context(), c, addr); err != nil {
		t.Errorf("new client certificate: %v", err)
	}
	if cert, err := kept.GetClientCertificate(&tls.CertificateRequestInfo{}); err != nil || cert.Leaf.SerialNumber.Int64() != 3 {
		t.Errorf("a configuration taken before: got %v and %v, want certificate 3", cert, err)
	}
	server.pair(second.issue(t, 4, time.Hour))
	var unknown x509.UnknownAuthorityError
	if _, err := greet(t.Context(), c, addr); !errors.As(err, &unknown) {
		t.Errorf("server of an unknown authority: got %v", err)
	}
	client.put("ca.pem", second.pem)
	if serial, err := greet(t.Context(), c, addr); err != nil || serial != 4 {
		t.Errorf("new authority: got certificate %d and %v", serial, err)
	}
}

func TestServer_SpeaksHTTP2AlsoWithClientCertificates(t *testing.T) {
	t.Parallel()
	ca, f := newAuthority(t, "ca"), folder{t, t.TempDir()}
	f.put("ca.pem", ca.pem)
	f.pair(ca.issue(t, 1, time.Hour))
	for _, mutual := range []bool{false, true} {
		srv := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = w.Write([]byte(r.Proto)) }))
		srv.TLS = newServer(t, f.tls(mutual), Options{}).Config()
		srv.Config.TLSConfig = srv.TLS
		l := srv.Listener
		go func() { _ = srv.Config.ServeTLS(l, "", "") }()
		t.Cleanup(func() { srv.Config.Close() })
		transport := &http.Transport{TLSClientConfig: newClient(t, f.client()).Config(), ForceAttemptHTTP2: true}
		t.Cleanup(transport.CloseIdleConnections)
		resp, err := (&http.Client{Transport: transport}).Get("https://" + l.Addr().String())
		must(t, err)
		resp.Body.Close()
		if resp.ProtoMajor != 2 {
			t.Errorf("mutual %v: got %s, want HTTP/2.0", mutual, resp.Proto)
		}
	}
}

func TestNewServer_RefusesWhatCannotServe(t *testing.T) {
	t.Parallel()
	ca, f := newAuthority(t, "ca"), folder{t, t.TempDir()}
	f.pair(ca.issue(t, 1, -time.Minute))
	f.put("ca.pem", []byte("nothing"))
	_, err := NewServer(f.tls(true), Options{})
	if err == nil || !strings.Contains(err.Error(), "expired") || !strings.Contains(err.Error(), "no certificate found") {
		t.Errorf("got %v, want both faults", err)
	}
	if _, err := NewServer(config.TLS{CertFile: f.path("none"), KeyFile: f.path("key.pem")}, Options{}); err == nil {
		t.Error("missing file: got no error")
	}
	if _, err := NewServer(config.TLS{}, Options{}); err == nil {
		t.Error("no files: got no error")
	}
	if _, err := NewClient(ClientFiles{CAFile: f.path("ca.pem")}, Options{}); err == nil {
		t.Error("client with broken authorities: got no error")
	}
}

func TestSource_LooksAtMostOncePerInterval(t *testing.T) {
	t.Parallel()
	ca, f := newAuthority(t, "ca"), folder{t, t.TempDir()}
	f.pair(ca.issue(t, 1, time.Hour))
	now := time.Now()
	s := newServer(t, f.tls(false), Options{now: func() time.Time { return now }})
	serial := func() int64 { return s.source.current().pair.Leaf.SerialNumber.Int64() }
	f.pair(ca.issue(t, 2, time.Hour))
	if got := serial(); got != 1 {
		t.Errorf("at once: got %d, want 1", got)
	}
	now = now.Add(time.Second)
	if got := serial(); got != 2 {
		t.Errorf("after a second: got %d, want 2", got)
	}
	f.pair(ca.issue(t, 3, time.Hour))
	s.Reload()
	if got := serial(); got != 3 {
		t.Errorf("after Reload: got %d, want 3", got)
	}
}
