package config

import (
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"strings"
)

// listener is a door's address with its names.
type listener struct {
	table  string
	listen string
	tls    TLS
}

func (c *Config) listeners() []listener {
	return []listener{
		{"http", c.HTTP.Listen, c.HTTP.TLS},
		{"grpc", c.GRPC.Listen, c.GRPC.TLS},
		{"admin", c.Admin.Listen, c.Admin.TLS},
		{"gateway", c.Gateway.Listen, c.Gateway.TLS},
	}
}

func (l *loader) checkListeners() {
	var taken []listener
	for _, d := range l.cfg.listeners() {
		l.checkTLS(d)
		if d.listen == "" {
			continue
		}
		if !l.checkAddress(d) {
			continue
		}
		for _, other := range taken {
			if overlap(d.listen, other.listen) {
				l.wrong(d.table+".listen", fmt.Sprintf("%q is taken by %s.listen, %q", d.listen, other.table, other.listen), "give one of them another port")
			}
		}
		taken = append(taken, d)
	}
	if len(taken) == 0 && len(l.faults) == 0 {
		l.wrong("http.listen", "no listener has an address", "set one of http.listen, grpc.listen, admin.listen, gateway.listen")
	}
	if a := l.cfg.Admin; a.Token != "" && a.TLS.CertFile == "" && a.Listen != "" && !allLoopback([]string{a.Listen}) {
		l.warn("admin.listen: %s is reachable from other machines without TLS, and the token is sent in plain text; set admin.tls.cert_file and key_file", a.Listen)
	}
}

func (l *loader) checkTLS(d listener) {
	t, path := d.tls, d.table+".tls"
	switch {
	case t.CertFile != "" && t.KeyFile == "":
		l.wrong(path+".cert_file", "has no key", "set "+path+".key_file")
	case t.CertFile == "" && t.KeyFile != "":
		l.wrong(path+".key_file", "has no certificate", "set "+path+".cert_file")
	case t.CertFile == "" && t.ClientCAFile != "":
		l.wrong(path+".client_ca_file", "callers show certificates only to a listener that has one", "set "+path+".cert_file and key_file")
	}
}

// checkAddress reports whether an address can be listened on.
func (l *loader) checkAddress(d listener) bool {
	path := d.table + ".listen"
	host, port, err := net.SplitHostPort(d.listen)
	if err != nil {
		hint := `want host:port, such as "127.0.0.1:8080" or ":8080"`
		if _, err := strconv.ParseUint(d.listen, 10, 16); err == nil {
			hint = fmt.Sprintf("did you mean %q?", ":"+d.listen)
		} else if strings.Contains(d.listen, "://") {
			hint = "leave the scheme out: want host:port"
		}
		l.wrong(path, fmt.Sprintf("%q is not an address", redactURL(d.listen)), hint)
		return false
	}
	if _, err := strconv.ParseUint(port, 10, 16); err != nil {
		l.wrong(path, fmt.Sprintf("%q is not a port", port), "want a number from 0 to 65535; 0 takes any free one")
		return false
	}
	if _, err := netip.ParseAddr(host); err != nil && strings.ContainsAny(host, ":/ ") {
		l.wrong(path, fmt.Sprintf("%q is not a host", host), "want an address or a name")
		return false
	}
	return true
}

// overlap tells that two addresses cannot both be listened on. A wildcard takes the port on every address.
func overlap(a, b string) bool {
	hostA, portA, _ := net.SplitHostPort(a)
	hostB, portB, _ := net.SplitHostPort(b)
	if portA != portB || portA == "0" {
		return false
	}
	return hostA == hostB || wildcard(hostA) || wildcard(hostB)
}

func wildcard(host string) bool {
	ip, err := netip.ParseAddr(host)
	return host == "" || err == nil && ip.IsUnspecified()
}
