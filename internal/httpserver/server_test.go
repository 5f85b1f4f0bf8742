package httpserver_test

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluicehq/sluice/internal/httpserver"
)

// start serves on a free port. The returned function waits for Serve's end.
func start(t *testing.T, h http.HandlerFunc, opts httpserver.Options) (*httpserver.Server, string, func() error) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := httpserver.New(h, opts)
	done := make(chan error, 1)
	go func() { done <- s.Serve(l) }()
	ended := sync.OnceValue(func() error { return <-done })
	t.Cleanup(func() {
		_ = s.Shutdown(context.WithoutCancel(t.Context()))
		if err := ended(); err != nil {
			t.Errorf("Serve: %v", err)
		}
	})
	return s, l.Addr().String(), ended
}

// dial opens a connection and sends a text.
func dial(t *testing.T, addr, text string) (net.Conn, *bufio.Reader) {
	t.Helper()
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	if _, err := io.WriteString(c, text); err != nil {
		t.Fatal(err)
	}
	return c, bufio.NewReader(c)
}

const get = "GET / HTTP/1.1\r\nHost: x\r\n\r\n"

func ok(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "ok") }

func TestServer_BoundsHeaders(t *testing.T) {
	t.Parallel()
	_, addr, _ := start(t, ok, httpserver.Options{})
	for size, want := range map[int]int{1 << 10: 200, 14 << 10: 200, 17 << 10: 431, 1 << 20: 431} {
		c, r := dial(t, addr, "GET / HTTP/1.1\r\nHost: x\r\n")
		go func() { _, _ = io.WriteString(c, "X-Large: "+strings.Repeat("x", size)+"\r\n\r\n") }() // cut off at some point
		res, err := http.ReadResponse(r, nil)
		if err != nil {
			t.Fatalf("a header of %d bytes: %v", size, err)
		}
		res.Body.Close()
		if res.StatusCode != want {
			t.Errorf("a header of %d bytes: %s, want %d", size, res.Status, want)
		}
	}
}

func TestServer_GivesSlowClientsFiveSeconds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := &pipes{conns: make(chan net.Conn), closed: make(chan struct{})}
		s := httpserver.New(http.HandlerFunc(ok), httpserver.Options{Streams: true})
		done := make(chan error, 1)
		go func() { done <- s.Serve(l) }()
		client, server := net.Pipe()
		l.conns <- server
		began := time.Now()
		if _, err := io.WriteString(client, "GET / HTTP/1.1\r\n"); err != nil {
			t.Fatal(err)
		}
		_, _ = io.Copy(io.Discard, client) // until the server gives up
		if took := time.Since(began); took != 5*time.Second {
			t.Errorf("half a header was waited for %s", took)
		}
		if err := s.Shutdown(t.Context()); err != nil {
			t.Error(err)
		}
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

// pipes is a listener whose connections are handed in.
type pipes struct {
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error {
	p.once.Do(func() { close(p.closed) })
	return nil
}

func (*pipes) Addr() net.Addr { return &net.TCPAddr{} }

func TestServer_AcceptsNoMoreConnectionsThanItMay(t *testing.T) {
	t.Parallel()
	_, addr, _ := start(t, ok, httpserver.Options{MaxConns: 2})
	first, r1 := dial(t, addr, get)
	_, r2 := dial(t, addr, get)
	third, r3 := dial(t, addr, get)
	for _, r := range []*bufio.Reader{r1, r2} {
		if _, err := http.ReadResponse(r, nil); err != nil { //nolint:bodyclose // the connection is
			t.Fatal(err)
		}
	}
	_ = third.SetReadDeadline(time.Now().Add(100 * time.Millisecond))
	if _, err := r3.Peek(1); err == nil {
		t.Fatal("a third connection was served")
	}
	first.Close()
	_ = third.SetReadDeadline(time.Time{})
	if _, err := http.ReadResponse(r3, nil); err != nil { //nolint:bodyclose // the connection is
		t.Errorf("after one was closed: %v", err)
	}
}

func TestServer_ShedsBeyondInFlight(t *testing.T) {
	t.Parallel()
	under, release := make(chan struct{}), make(chan struct{})
	s, addr, _ := start(t, func(http.ResponseWriter, *http.Request) { under <- struct{}{}; <-release }, httpserver.Options{MaxInFlight: 1})
	_, first := dial(t, addr, get)
	<-under
	_, second := dial(t, addr, get)
	res, err := http.ReadResponse(second, nil)
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	if res.StatusCode != http.StatusServiceUnavailable || res.Header.Get("Retry-After") == "" || res.Header.Get("Content-Type") != "application/problem+json" {
		t.Errorf("%s %v", res.Status, res.Header)
	}
	if s.InFlight() < 1 {
		t.Errorf("%d in flight", s.InFlight())
	}
	close(release)
	if _, err := http.ReadResponse(first, nil); err != nil { //nolint:bodyclose // the connection is
		t.Error(err)
	}
}

func TestServer_LeavesWithoutLosingARequest(t *testing.T) {
	t.Parallel()
	under, release := make(chan struct{}), make(chan struct{})
	s, addr, ended := start(t, func(http.ResponseWriter, *http.Request) { under <- struct{}{}; <-release }, httpserver.Options{})
	c, r := dial(t, addr, get)
	<-under
	release <- struct{}{}
	res, err := http.ReadResponse(r, nil)
	if err != nil || res.Close {
		t.Fatalf("%+v, %v", res, err)
	}
	res.Body.Close()

	s.Leave()
	if _, err := io.WriteString(c, get); err != nil {
		t.Fatal(err)
	}
	<-under
	stopped := make(chan error, 1)
	go func() { stopped <- s.Shutdown(context.WithoutCancel(t.Context())) }()
	if err := ended(); err != nil { // it accepts nothing any more, and waits for the request
		t.Fatal(err)
	}
	release <- struct{}{}
	res, err = http.ReadResponse(r, nil)
	if err != nil || !res.Close {
		t.Fatalf("the last answer does not end the connection: %+v, %v", res, err)
	}
	res.Body.Close()
	if err := <-stopped; err != nil {
		t.Error(err)
	}
}

func TestServer_EndsWhatOutlastsItsDeadline(t *testing.T) {
	t.Parallel()
	under, gone := make(chan struct{}), make(chan struct{})
	s, addr, _ := start(t, func(_ http.ResponseWriter, r *http.Request) {
		under <- struct{}{}
		<-r.Context().Done()
		close(gone)
	}, httpserver.Options{Streams: true})
	dial(t, addr, get)
	<-under
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.Shutdown(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	<-gone
}
