package certs

import (
	"context"
	"crypto/tls"
	"net"
)

// ClientFiles are the files of connections that we open; empty ones are not used.
type ClientFiles struct {
	// CAFile holds the authorities that sign servers. Default: the system's.
	CAFile string
	// CertFile and KeyFile are shown to servers that ask. Default: none.
	CertFile, KeyFile string
}

// Client holds the certificates of connections that we open. It is safe for concurrent use.
type Client struct {
	source source
}

// NewClient reads the files of connections. Without any, the system's authorities are trusted.
func NewClient(f ClientFiles, opts Options) (*Client, error) {
	c := &Client{source{files: files{f.CertFile, f.KeyFile, f.CAFile}, opts: opts.withDefaults()}}
	if err := c.source.open(); err != nil {
		return nil, err
	}
	return c, nil
}

// Config returns a configuration that always shows the current certificate. The authorities in it are those of now:
// crypto/tls has no hook for others that still knows the address dialled, so whoever dials often asks for a new
// Config each time, as Dial does.
func (c *Client) Config() *tls.Config {
	cfg := &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: c.source.current().pool}
	if c.source.files.cert != "" {
		cfg.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
			return c.source.current().pair, nil
		}
	}
	return cfg
}

// Dial connects and shakes hands by the current files, authorities included.
func (c *Client) Dial(ctx context.Context, dialer *net.Dialer, network, addr string) (net.Conn, error) {
	d := tls.Dialer{NetDialer: dialer, Config: c.Config()}
	return d.DialContext(ctx, network, addr)
}
