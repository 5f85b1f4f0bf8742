package testpg

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"
)

// CAFile is the certificate that signs the server's, in PEM. It is empty without Options.TLS.
func (s *Server) CAFile() string {
	if !s.tls {
		return ""
	}
	return filepath.Join(s.dir, "ca.pem")
}

// encrypt gives the server a certificate, by an authority of its own, and has it refuse connections in plain text.
func (s *Server) encrypt() error {
	s.tls = true
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	cert := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "testpg"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, cert, cert, &key.PublicKey, key)
	if err != nil {
		return err
	}
	keyDER, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return err
	}
	certPEM := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	for path, text := range map[string][]byte{
		s.CAFile():                             certPEM,
		filepath.Join(s.data(), "server.crt"):  certPEM,
		filepath.Join(s.data(), "server.key"):  pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: keyDER}),
		filepath.Join(s.data(), "pg_hba.conf"): []byte("hostssl all all 127.0.0.1/32 trust\n"),
	} {
		if err := s.writeOwned(path, text); err != nil {
			return err
		}
	}
	s.config = append([]string{"ssl=on"}, s.config...)
	return nil
}

// writeOwned writes a file that belongs to the server's user.
func (s *Server) writeOwned(path string, text []byte) error {
	if err := os.WriteFile(path, text, 0o600); err != nil {
		return err
	}
	if s.as == nil {
		return nil
	}
	return os.Chown(path, int(s.as.Uid), int(s.as.Gid))
}
