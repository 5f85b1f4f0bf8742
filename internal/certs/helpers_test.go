package certs

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"io"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/sluicehq/sluice/internal/config"
)

// authority signs certificates of a test.
type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	pem  []byte
}

func newAuthority(t *testing.T, name string) *authority {
	t.Helper()
	key := newKey(t)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageCertSign, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	must(t, err)
	cert, err := x509.ParseCertificate(der)
	must(t, err)
	return &authority{cert, key, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})}
}

// issue signs a certificate for 127.0.0.1 that is good for client and server, valid for an hour up to the given time from now.
func (a *authority) issue(t *testing.T, serial int64, until time.Duration) (cert, key []byte) {
	t.Helper()
	k := newKey(t)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(serial), Subject: pkix.Name{CommonName: "test"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		NotBefore: time.Now().Add(until - time.Hour), NotAfter: time.Now().Add(until),
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, &k.PublicKey, a.key)
	must(t, err)
	secret, err := x509.MarshalPKCS8PrivateKey(k)
	must(t, err)
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret})
}

func newKey(t *testing.T) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(t, err)
	return key
}

// folder holds cert.pem, key.pem and ca.pem.
type folder struct {
	t   *testing.T
	dir string
}

func (f folder) path(name string) string { return filepath.Join(f.dir, name) }

func (f folder) put(name string, data []byte) {
	f.t.Helper()
	must(f.t, os.WriteFile(f.path(name), data, 0o600))
}

func (f folder) pair(cert, key []byte) {
	f.t.Helper()
	f.put("cert.pem", cert)
	f.put("key.pem", key)
}

func (f folder) tls(mutual bool) config.TLS {
	t := config.TLS{CertFile: f.path("cert.pem"), KeyFile: f.path("key.pem")}
	if mutual {
		t.ClientCAFile = f.path("ca.pem")
	}
	return t
}

func (f folder) client() ClientFiles {
	return ClientFiles{CAFile: f.path("ca.pem"), CertFile: f.path("cert.pem"), KeyFile: f.path("key.pem")}
}

// serve answers a byte on every connection that shakes hands, until the test ends.
func serve(t *testing.T, cfg *tls.Config) (addr string) {
	t.Helper()
	l, err := tls.Listen("tcp", "127.0.0.1:0", cfg)
	must(t, err)
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				_, _ = conn.Write([]byte{1})
			}()
		}
	}()
	return l.Addr().String()
}

// greet connects and reads the byte: with TLS 1.3 a client learns only by reading that its certificate was refused.
func greet(ctx context.Context, c *Client, addr string) (serial int64, err error) {
	conn, err := c.Dial(ctx, &net.Dialer{Timeout: 10 * time.Second}, "tcp", addr)
	if err != nil {
		return 0, err
	}
	defer conn.Close()
	if _, err := io.ReadFull(conn, make([]byte, 1)); err != nil {
		return 0, err
	}
	state := conn.(*tls.Conn).ConnectionState()
	if state.Version < tls.VersionTLS12 {
		return 0, errors.New("older than TLS 1.2")
	}
	return state.PeerCertificates[0].SerialNumber.Int64(), nil
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
