package rueidisconn

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"strconv"
	"strings"

	"github.com/sluicehq/sluice/redisstore"
)

// Open connects by a URL:
//
//	redis://user:password@host:6379/0
//	redis+sentinel://user:password@host1:26379,host2:26379/mymaster
//	redis+cluster://user:password@host1:6379,host2:6379
//
// With rediss instead of redis connections use TLS. A host without a port has 6379, a sentinel 26379; an IPv6 address
// stands in brackets. Special characters of user and password are percent-encoded.
func Open(rawURL string) (*Conn, error) {
	opts, err := ParseURL(rawURL)
	if err != nil {
		return nil, err
	}
	return New(opts)
}

// OpenStore returns a store connected by a URL, for programs that need no options.
func OpenStore(rawURL string) (*redisstore.Store, error) {
	conn, err := Open(rawURL)
	if err != nil {
		return nil, err
	}
	return redisstore.New(conn, redisstore.Options{}), nil
}

// errURL repeats nothing of the URL, as no error of ParseURL repeats more than the scheme: a password with a special
// character that was not encoded may turn up in any other part.
var errURL = errors.New("redis URL cannot be parsed: want redis://user:password@host:6379/0, " +
	"with special characters of user and password percent-encoded and no parameters")

// ParseURL reads a URL as described at Open. Its errors do not contain the password.
func ParseURL(rawURL string) (Options, error) {
	u, hosts, err := splitURL(rawURL)
	if err != nil {
		return Options{}, err
	}
	var opts Options
	scheme, kind, _ := strings.Cut(u.Scheme, "+")
	switch scheme {
	case "redis":
	case "rediss":
		opts.TLS = &tls.Config{MinVersion: tls.VersionTLS12}
	default:
		return Options{}, fmt.Errorf("redis URL has scheme %q: want redis, rediss, redis+sentinel or redis+cluster", u.Scheme)
	}
	port := "6379"
	path := strings.TrimPrefix(u.Path, "/")
	switch kind {
	case "":
		if path != "" {
			if opts.DB, err = strconv.Atoi(path); err != nil || opts.DB < 0 {
				return Options{}, errors.New("redis URL has a path that is no database: want a number, as in redis://host:6379/0")
			}
		}
	case "sentinel":
		port = "26379"
		if opts.SentinelMaster = path; path == "" {
			return Options{}, errors.New("redis+sentinel URL has no path: want the master's name after the hosts, as in redis+sentinel://host:26379/mymaster")
		}
	case "cluster":
		opts.Cluster = true
		if path != "" {
			return Options{}, errors.New("redis+cluster URL has a path: a Redis Cluster has no databases")
		}
	default:
		return Options{}, fmt.Errorf("redis URL has scheme %q: want sentinel or cluster after the +", u.Scheme)
	}
	if opts.Addrs, err = addresses(hosts, port); err != nil {
		return Options{}, err
	}
	opts.Username = u.User.Username()
	opts.Password, _ = u.User.Password()
	return opts, nil
}

// splitURL parses a URL apart from its hosts: net/url accepts several only by accident, and not those in brackets.
func splitURL(rawURL string) (u *url.URL, hosts string, err error) {
	scheme, rest, found := strings.Cut(rawURL, "://")
	if !found {
		return nil, "", errURL
	}
	end := strings.IndexAny(rest, "/?#")
	if end < 0 {
		end = len(rest)
	}
	start := strings.LastIndexByte(rest[:end], '@') + 1
	u, err = url.Parse(scheme + "://" + rest[:start] + "hosts" + rest[end:])
	// What follows ? or # is a parameter we do not have, or the rest of a password.
	if err != nil || u.RawQuery != "" || u.Fragment != "" {
		return nil, "", errURL
	}
	return u, rest[start:end], nil
}

// addresses reads hosts separated by commas.
func addresses(hosts, port string) ([]string, error) {
	var addrs []string
	for host := range strings.SplitSeq(hosts, ",") {
		if host == "" {
			continue
		}
		addr, ok := address(host, port)
		if !ok {
			return nil, errURL
		}
		addrs = append(addrs, addr)
	}
	if len(addrs) == 0 {
		return nil, errors.New("redis URL has no host")
	}
	return addrs, nil
}

// address completes a host by the port if it has none.
func address(host, port string) (addr string, ok bool) {
	if i := strings.LastIndexByte(host, ':'); i > strings.LastIndexByte(host, ']') {
		if i+1 < len(host) {
			port = host[i+1:]
		}
		host = host[:i]
	}
	if name, found := strings.CutPrefix(host, "["); found {
		name, closed := strings.CutSuffix(name, "]")
		if ip, err := netip.ParseAddr(name); !closed || err != nil || !ip.Is6() {
			return "", false
		}
		host = name
	} else if host == "" || strings.ContainsAny(host, ":[]") {
		return "", false
	}
	_, err := strconv.ParseUint(port, 10, 16)
	return net.JoinHostPort(host, port), err == nil
}
