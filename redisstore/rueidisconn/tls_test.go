package rueidisconn

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/internal/testredis"
	"github.com/sluicehq/sluice/redisstore"
)

// authority is a certificate authority of the test's own.
type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

func newAuthority(t *testing.T) authority {
	t.Helper()
	a := authority{key: newKey(t)}
	template := &x509.Certificate{
		SerialNumber:          big.NewInt(1),
		Subject:               pkix.Name{CommonName: "sluice test CA"},
		NotBefore:             time.Now().Add(-time.Hour),
		NotAfter:              time.Now().Add(time.Hour),
		IsCA:                  true,
		BasicConstraintsValid: true,
		KeyUsage:              x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &a.key.PublicKey, a.key)
	if err != nil {
		t.Fatal(err)
	}
	if a.cert, err = x509.ParseCertificate(der); err != nil {
		t.Fatal(err)
	}
	return a
}

// issue writes a certificate for 127.0.0.1 and its key into files.
func (a authority) issue(t *testing.T) (certFile, keyFile string) {
	t.Helper()
	key := newKey(t)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(2),
		NotBefore:    time.Now().Add(-time.Hour),
		NotAfter:     time.Now().Add(time.Hour),
		IPAddresses:  []net.IP{net.IPv4(127, 0, 0, 1)},
		ExtKeyUsage:  []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, &key.PublicKey, a.key)
	if err != nil {
		t.Fatal(err)
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return writePEM(t, "CERTIFICATE", der), writePEM(t, "PRIVATE KEY", keyDER)
}

func (a authority) client() *tls.Config {
	pool := x509.NewCertPool()
	pool.AddCert(a.cert)
	return &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}
}

func newKey(t *testing.T) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func writePEM(t *testing.T, kind string, der []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "pem")
	if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// startTLS starts a server that speaks TLS on the returned address, and plain text on the port testredis watches.
func startTLS(t *testing.T, ca authority) (server *testredis.Server, addr string) {
	t.Helper()
	cert, key := ca.issue(t)
	server = testredis.Single(t, testredis.Options{Config: []string{
		"--tls-cert-file", cert, "--tls-key-file", key, "--tls-ca-cert-file", writePEM(t, "CERTIFICATE", ca.cert.Raw),
		"--tls-auth-clients", "no",
	}})
	// Another process may take a free port before Redis does; then another is as good.
	eventually(t, "Redis listens for TLS", func() error {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return err
		}
		addr = l.Addr().String()
		_ = l.Close()
		_, err = server.Do("CONFIG", "SET", "tls-port", strconv.Itoa(l.Addr().(*net.TCPAddr).Port))
		return err
	})
	return server, addr
}

func TestTLS_EveryOperationWorksWithTheMinimalACL(t *testing.T) {
	t.Parallel()
	ca := newAuthority(t)
	server, addr := startTLS(t, ca)
	setUser(t, server, minimalACL()...)
	conn := open(t, Options{Addrs: []string{addr}, TLS: ca.client(), Username: aclUser, Password: aclPassword})
	if err := everyOperation(t.Context(), redisstore.New(conn, redisstore.Options{}), "a"); err != nil {
		t.Error(err)
	}
	wantNothingRefused(t, server)
}

func TestTLS_RefusedConnectionsSayWhy(t *testing.T) {
	t.Parallel()
	ca := newAuthority(t)
	server, addr := startTLS(t, ca)
	setUser(t, server, minimalACL()...)
	for _, c := range []struct {
		name string
		opts Options
		want string
	}{
		{"wrong CA", Options{Addrs: []string{addr}, TLS: newAuthority(t).client(), Username: aclUser, Password: aclPassword}, "certificate"},
		{"wrong password", Options{Addrs: []string{addr}, TLS: ca.client(), Username: aclUser, Password: "wrong battery"}, "WRONGPASS"},
	} {
		store := redisstore.New(open(t, c.opts), redisstore.Options{})
		s := take(t.Context(), store, daily("a", 1))
		if !errors.Is(s.Err, sluice.ErrUnavailable) || !strings.Contains(s.Err.Error(), c.want) || !strings.Contains(s.Err.Error(), c.opts.Addrs[0]) {
			t.Errorf("%s: got %v, want ErrUnavailable that names %q and the address", c.name, s.Err, c.want)
		}
		if s.Err != nil && strings.Contains(s.Err.Error(), c.opts.Password) {
			t.Errorf("%s: the error shows the password: %v", c.name, s.Err)
		}
	}
}
