package app_test

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"

	"github.com/sluicehq/sluice/api/sluicev1"
	"github.com/sluicehq/sluice/internal/testnode"
	"github.com/sluicehq/sluice/internal/testredis"
)

func TestTLS_EveryListenerAsksForAClientCertificate(t *testing.T) {
	t.Parallel()
	ca := testnode.NewAuthority(t)
	pair := ca.Issue(7)
	config := inMemory
	for _, door := range []string{"http", "grpc", "admin", "gateway"} {
		config += fmt.Sprintf("[%s.tls]\ncert_file = %q\nkey_file = %q\nclient_ca_file = %q\n", door, pair.Cert, pair.Key, ca.File)
	}
	node := testnode.Start(t, testnode.Options{Config: config + routeTo(named(t, "here")), Rules: usersRule, Gateway: true})
	known, unknown, stranger := ca.Client(ca.Issue(8)), ca.Client(), ca.Client(testnode.NewAuthority(t).Issue(9))
	for _, url := range []string{"https://" + node.HTTP + "/livez", "https://" + node.Admin + "/livez", "https://" + node.Gateway + "/"} {
		if a, err := request(t, over(known), http.MethodGet, url, ""); err != nil || a.status != http.StatusOK {
			t.Errorf("%s with a certificate: got %d, %v, want 200", url, a.status, err)
		}
		for _, cfg := range []*tls.Config{unknown, stranger} {
			if a, err := request(t, over(cfg), http.MethodGet, url, ""); err == nil {
				t.Errorf("%s without a certificate of the authority: got %d, want no answer", url, a.status)
			}
		}
	}
	if err := checkOver(t, node.GRPC, known); err != nil {
		t.Errorf("gRPC with a certificate: %v", err)
	}
	if err := checkOver(t, node.GRPC, unknown); err == nil {
		t.Error("gRPC without a certificate: got an answer, want none")
	}
}

func TestTLS_AReplacedCertificateIsShownWithoutRestart(t *testing.T) {
	t.Parallel()
	ca := testnode.NewAuthority(t)
	pair := ca.Issue(1)
	config := inMemory
	for _, door := range []string{"http", "grpc", "admin"} {
		config += fmt.Sprintf("[%s.tls]\ncert_file = %q\nkey_file = %q\n", door, pair.Cert, pair.Key)
	}
	node := testnode.Start(t, testnode.Options{Config: config, Rules: usersRule})
	for serial := int64(1); serial <= 2; serial++ {
		ca.Reissue(pair, serial)
		for _, address := range []string{node.HTTP, node.GRPC, node.Admin} {
			eventually(t, patience, fmt.Sprintf("%s shows certificate %d", address, serial), func() error {
				cfg := ca.Client()
				cfg.NextProtos = []string{"h2"}
				conn, err := tls.Dial("tcp", address, cfg)
				if err != nil {
					return err
				}
				defer conn.Close()
				if got := conn.ConnectionState().PeerCertificates[0].SerialNumber.Int64(); got != serial {
					return fmt.Errorf("it shows %d", got)
				}
				return nil
			})
		}
	}
}

func TestTLS_CountersAreKeptInRedisOverTLS(t *testing.T) {
	t.Parallel()
	ca := testnode.NewAuthority(t)
	server, client := ca.Issue(1), ca.Issue(2)
	redis := testredis.Single(t, testredis.Options{Config: []string{
		"--tls-cert-file", server.Cert, "--tls-key-file", server.Key, "--tls-ca-cert-file", ca.File, "--tls-auth-clients", "yes",
	}})
	var addr string
	// Another process may take a free port before Redis does; then another is as good.
	eventually(t, patience, "Redis listens for TLS", func() error {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return err
		}
		addr = l.Addr().String()
		_ = l.Close()
		_, err = redis.Do("CONFIG", "SET", "tls-port", strconv.Itoa(l.Addr().(*net.TCPAddr).Port))
		return err
	})
	node := testnode.Start(t, testnode.Options{Rules: usersRule, Config: fmt.Sprintf(
		"[redis]\nurl = \"rediss://%s\"\nca_file = %q\ncert_file = %q\nkey_file = %q\n[limiter]\ntimeout = \"5s\"\n", addr, ca.File, client.Cert, client.Key)})
	for n := range 4 {
		if d, _ := check(t, node, "ann"); d.Mode != "exact" || d.Allowed != (n < 3) {
			t.Errorf("request %d: got %+v, want three of them, exactly", n+1, d)
		}
	}
}

// over is a client that talks by these rules, on connections of its own.
func over(cfg *tls.Config) *http.Client {
	return &http.Client{Transport: &http.Transport{TLSClientConfig: cfg, ForceAttemptHTTP2: true, DisableKeepAlives: true}}
}

func checkOver(t *testing.T, address string, cfg *tls.Config) error {
	t.Helper()
	conn, err := grpc.NewClient(address, grpc.WithTransportCredentials(credentials.NewTLS(cfg)))
	if err != nil {
		return err
	}
	defer conn.Close()
	resp, err := sluicev1.NewLimiterServiceClient(conn).Check(t.Context(), &sluicev1.CheckRequest{Request: question{user: "ann"}.proto()})
	if err == nil && !resp.GetDecision().GetAllowed() {
		return errors.New("refused")
	}
	return err
}
