package certs

import (
	"crypto/tls"
	"errors"
	"time"

	"github.com/sluicehq/sluice/internal/config"
)

// Server holds the certificates of a listener. It is safe for concurrent use.
type Server struct {
	source source
}

// NewServer reads the files of a listener, which must name a certificate.
func NewServer(t config.TLS, opts Options) (*Server, error) {
	if t.CertFile == "" {
		return nil, errors.New("no certificate: set cert_file and key_file")
	}
	s := &Server{source{files: files{t.CertFile, t.KeyFile, t.ClientCAFile}, opts: opts.withDefaults()}}
	if t.ClientCAFile != "" {
		s.source.finish = s.finish
	}
	if err := s.source.open(); err != nil {
		return nil, err
	}
	return s, nil
}

// Config returns a configuration that always uses the current certificates. It can be given to several listeners.
func (s *Server) Config() *tls.Config {
	cfg := s.base()
	cfg.GetCertificate = func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return s.source.current().pair, nil }
	if s.source.files.ca != "" {
		cfg.ClientAuth = tls.RequireAndVerifyClientCert
		cfg.ClientCAs = s.source.good.Load().pool
		cfg.GetConfigForClient = func(*tls.ClientHelloInfo) (*tls.Config, error) { return s.source.current().server, nil }
	}
	return cfg
}

// finish makes the configuration by which clients are verified. Each set of authorities has one of its own.
func (s *Server) finish(m *material) {
	m.server = s.base()
	m.server.Certificates = []tls.Certificate{*m.pair}
	m.server.ClientAuth = tls.RequireAndVerifyClientCert
	m.server.ClientCAs = m.pool
}

func (s *Server) base() *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS12,
		// http.Server adds these to its own copy only, not to what GetConfigForClient returns.
		NextProtos: s.source.opts.NextProtos,
		// A resumed session is not verified again, so tickets would outlive the authority that signed the client.
		SessionTicketsDisabled: s.source.files.ca != "",
	}
}

// Reload looks at the files now, for those who watch them: without handshakes nobody else does.
func (s *Server) Reload() { s.source.force() }

// NotAfter is when the certificate in use expires.
func (s *Server) NotAfter() time.Time { return s.source.notAfter() }
