package gateway

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"strings"
	"syscall"
	"time"

	"github.com/sluicehq/sluice/internal/cleanpath"
	"github.com/sluicehq/sluice/internal/config"
)

// upstream is a service that requests are passed to, with connections of its own.
type upstream struct {
	name         string
	scheme, host string
	base         cleanpath.Path // without final slash; empty: none
	hostField    string         // empty: the client's
	transport    *http.Transport
}

const (
	defaultTimeout = 30 * time.Second
	dialTimeout    = 5 * time.Second
	// idleConns is how many idle connections to an upstream are kept. Fewer than there are parallel requests would
	// make connections come and go under load; each costs a descriptor and some 10 KB.
	idleConns = 2048
	// idleTimeout is shorter than the 60 to 75 s after which common servers close idle connections, so that a request
	// rarely crosses with a close.
	idleTimeout = 50 * time.Second
	// maxAnswerHeader bounds the header of an upstream's answer.
	maxAnswerHeader = 256 << 10
)

func newUpstreams(list []config.Upstream) (map[string]*upstream, []error) {
	all := map[string]*upstream{}
	var faults []error
	for i := range list {
		u, err := newUpstream(&list[i])
		switch {
		case err != nil:
			faults = append(faults, fmt.Errorf("gateway.upstream[%d] %q: %w", i, list[i].Name, err))
		case all[u.name] != nil:
			faults = append(faults, fmt.Errorf("gateway.upstream[%d]: there are two named %q: rename one", i, u.name))
		}
		all[list[i].Name] = u
	}
	return all, faults
}

func newUpstream(c *config.Upstream) (*upstream, error) {
	if c.Name == "" {
		return &upstream{}, errors.New("has no name: routes refer to it by name")
	}
	target, err := parseTarget(c.URL)
	if err != nil {
		return &upstream{name: c.Name}, err
	}
	u := &upstream{name: c.Name, scheme: target.Scheme, host: target.Host, hostField: c.Host}
	if path := strings.TrimSuffix(target.EscapedPath(), "/"); path != "" {
		if u.base, err = cleanpath.Clean(path); err != nil {
			return u, fmt.Errorf("url %q: %w", c.URL, err)
		}
	}
	if strings.ContainsAny(c.Host, "/@ \r\n") {
		return u, fmt.Errorf("host %q: want a host name with optional port", c.Host)
	}
	u.transport, err = newTransport(target.Hostname(), cmp.Or(c.Timeout.Std(), defaultTimeout), c.CAFile)
	return u, err
}

func parseTarget(text string) (*url.URL, error) {
	target, err := url.Parse(text)
	if err != nil {
		return nil, fmt.Errorf("url: %w", err)
	}
	if target.Scheme != "http" && target.Scheme != "https" || target.Host == "" || target.User != nil || target.RawQuery != "" || target.Fragment != "" {
		return nil, fmt.Errorf("url %q: want http or https, host and optional port and path, such as \"http://127.0.0.1:3000\"", text)
	}
	return target, nil
}

func newTransport(host string, timeout time.Duration, caFile string) (*http.Transport, error) {
	guard := guard{host: host}
	dialer := &net.Dialer{Timeout: dialTimeout, KeepAlive: 30 * time.Second, ControlContext: guard.control}
	t := &http.Transport{
		// No Proxy: the environment must not send requests elsewhere.
		DialContext:            dialer.DialContext,
		TLSHandshakeTimeout:    dialTimeout,
		ResponseHeaderTimeout:  timeout,
		ExpectContinueTimeout:  time.Second,
		MaxIdleConnsPerHost:    idleConns,
		IdleConnTimeout:        idleTimeout,
		MaxResponseHeaderBytes: maxAnswerHeader,
		DisableCompression:     true, // what the client asked for is passed on, and nothing else
		ForceAttemptHTTP2:      true,
	}
	if caFile != "" {
		pem, err := os.ReadFile(caFile) //nolint:gosec // the operator names it
		if err != nil {
			return nil, fmt.Errorf("ca_file: %w", err)
		}
		pool := x509.NewCertPool()
		if !pool.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("ca_file %q holds no PEM certificate", caFile)
		}
		t.TLSClientConfig = &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}
	}
	return t, nil
}

// errGuarded says what to do about a refused address.
var errGuarded = errors.New("the upstream's name leads to an address that is reachable from this machine only: write the address itself into its url if that is meant")

// guard keeps a name in the configuration, whose addresses others may control, from leading to services that are meant
// for this machine alone: its own, and the metadata service of the cloud it runs in.
type guard struct{ host string }

// metadata are services of clouds that are not link-local.
var metadata = []netip.Addr{
	netip.MustParseAddr("fd00:ec2::254"), netip.MustParseAddr("100.100.100.200"), netip.MustParseAddr("192.0.0.192"),
}

// control is asked with the address that is about to be connected to, after resolution.
func (g guard) control(_ context.Context, _, address string, _ syscall.RawConn) error {
	to, err := netip.ParseAddrPort(address)
	if err != nil {
		return fmt.Errorf("dial %s: %w", address, err)
	}
	if !g.allows(to.Addr()) {
		return fmt.Errorf("dial %s: %w", address, errGuarded)
	}
	return nil
}

func (g guard) allows(addr netip.Addr) bool {
	addr = addr.Unmap().WithZone("")
	if written, err := netip.ParseAddr(g.host); err == nil {
		return written.Unmap().WithZone("") == addr
	}
	if addr.IsLoopback() {
		return g.host == "localhost"
	}
	for _, m := range metadata {
		if addr == m {
			return false
		}
	}
	return !addr.IsLinkLocalUnicast() && !addr.IsMulticast() && !addr.IsUnspecified()
}
