package testnode

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"
)

// Authority signs the certificates of a test.
type Authority struct {
	// File holds its own certificate.
	File string

	tb   TB
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

// Pair names the files of a certificate and its key.
type Pair struct{ Cert, Key string }

// NewAuthority makes an authority.
func NewAuthority(tb TB) *Authority {
	tb.Helper()
	a := &Authority{tb: tb, File: filepath.Join(tb.TempDir(), "ca.pem")}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test authority"}, IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageCertSign, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
	}
	var der []byte
	der, a.key = a.sign(template, nil)
	var err error
	if a.cert, err = x509.ParseCertificate(der); err != nil {
		tb.Fatalf("%v", err)
	}
	a.write(a.File, "CERTIFICATE", der)
	return a
}

// Issue writes a certificate for 127.0.0.1 with its key, good for servers and clients.
func (a *Authority) Issue(serial int64) Pair {
	a.tb.Helper()
	dir := a.tb.TempDir()
	p := Pair{filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")}
	a.Reissue(p, serial)
	return p
}

// Reissue replaces a certificate and its key by others.
func (a *Authority) Reissue(p Pair, serial int64) {
	a.tb.Helper()
	der, key := a.sign(&x509.Certificate{
		SerialNumber: big.NewInt(serial), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}, a.cert)
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		a.tb.Fatalf("%v", err)
	}
	a.write(p.Cert, "CERTIFICATE", der)
	a.write(p.Key, "PRIVATE KEY", secret)
}

// Client returns a configuration that trusts the authority and shows these certificates.
func (a *Authority) Client(pairs ...Pair) *tls.Config {
	a.tb.Helper()
	cfg := &tls.Config{RootCAs: x509.NewCertPool(), MinVersion: tls.VersionTLS12}
	cfg.RootCAs.AddCert(a.cert)
	for _, p := range pairs {
		cert, err := tls.LoadX509KeyPair(p.Cert, p.Key)
		if err != nil {
			a.tb.Fatalf("%v", err)
		}
		cfg.Certificates = append(cfg.Certificates, cert)
	}
	return cfg
}

// sign makes a key and a certificate for it; without a parent it is signed by itself.
func (a *Authority) sign(template, parent *x509.Certificate) ([]byte, *ecdsa.PrivateKey) {
	a.tb.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		a.tb.Fatalf("%v", err)
	}
	signer := a.key
	if parent == nil {
		parent, signer = template, key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, signer)
	if err != nil {
		a.tb.Fatalf("%v", err)
	}
	return der, key
}

func (a *Authority) write(path, kind string, der []byte) {
	a.tb.Helper()
	if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600); err != nil {
		a.tb.Fatalf("%v", err)
	}
}
