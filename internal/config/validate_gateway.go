package config

import (
	"fmt"
	"net/url"
	"slices"
	"strings"

	"golang.org/x/net/http/httpguts"
)

func (l *loader) checkGateway() {
	g := &l.cfg.Gateway
	var known []string
	for i := range g.Upstreams {
		u, at := &g.Upstreams[i], indexed("gateway.upstream", i)
		switch {
		case u.Name == "":
			l.wrong(at+".name", "is missing", "routes choose an upstream by its name")
		case slices.Contains(known, u.Name):
			l.wrong(at+".name", fmt.Sprintf("%q is the name of another upstream", u.Name), "")
		}
		known = append(known, u.Name)
		l.checkUpstream(u, at)
	}
	for i := range g.Routes {
		l.checkRoute(&g.Routes[i], indexed("gateway.route", i), known)
	}
	l.checkSameRoutes()
	switch {
	case g.Listen != "" && len(g.Routes) == 0:
		l.warn("gateway.listen: there is no [[gateway.route]], so the gateway answers 404 to every request")
	case g.Listen == "" && len(g.Routes) > 0:
		l.warn("gateway.route: there is no gateway.listen, so no request reaches the routes")
	}
}

func (l *loader) checkUpstream(u *Upstream, at string) {
	l.positive(at+".timeout", u.Timeout)
	if !httpguts.ValidHostHeader(u.Host) || strings.ContainsAny(u.Host, "/@") {
		l.wrong(at+".host", fmt.Sprintf("%q is not a host", redactURL(u.Host)), "want the name, with a port if there is one, without a scheme")
	}
	const hint = `want http or https, host and port, such as "http://127.0.0.1:9000"`
	parsed, err := url.Parse(u.URL)
	switch {
	case u.URL == "":
		l.wrong(at+".url", "is missing", hint)
	case err != nil || parsed.Scheme != "http" && parsed.Scheme != "https" || parsed.Hostname() == "":
		l.wrong(at+".url", "is not the URL of a service", hint)
	case parsed.User != nil:
		l.wrong(at+".url", "has credentials, which the gateway does not send", "let callers send their own")
	case parsed.RawQuery != "" || parsed.Fragment != "":
		l.wrong(at+".url", "has parameters or a fragment", "end it with the path")
	case u.CAFile != "" && parsed.Scheme != "https":
		l.wrong(at+".ca_file", "is used with https only", "begin url with https://")
	}
}

func (l *loader) checkRoute(r *Route, at string, upstreams []string) {
	switch {
	case r.Upstream == "":
		l.wrong(at+".upstream", "is missing", "name one of the [[gateway.upstream]] tables")
	case !slices.Contains(upstreams, r.Upstream):
		hint := didYouMean(r.Upstream, upstreams)
		if hint == "" {
			hint = "add a [[gateway.upstream]] with this name"
		}
		l.wrong(at+".upstream", fmt.Sprintf("there is no upstream %q", r.Upstream), hint)
	}
	if !strings.HasPrefix(r.Path, "/") {
		l.wrong(at+".path", fmt.Sprintf("%q is not a path", r.Path), "begin it with /")
	} else if strings.ContainsAny(r.Path, "*{}?#") {
		l.wrong(at+".path", fmt.Sprintf("%q has a pattern or parameter", r.Path), "a route's path is a plain prefix, such as \"/api\"")
	}
	if strings.ContainsAny(r.Host, ":/ ") {
		l.wrong(at+".host", fmt.Sprintf("%q is not a host's name", redactURL(r.Host)), "want the name alone, without scheme and port")
	}
	for i, m := range r.Methods {
		if !httpguts.ValidHeaderFieldName(m) || m != strings.ToUpper(m) {
			l.wrong(indexed(at+".methods", i), fmt.Sprintf("%q is not a method", m), "want capital letters, such as \"GET\"")
		}
	}
	if r.Namespace == "" {
		l.wrong(at+".namespace", "is empty", "leave it out for \"default\"")
	}
	l.atLeast(at+".cost", r.Cost, 0)
	for name := range r.Attributes {
		if name == "" {
			l.wrong(joinKey(at+".attributes", name), "an attribute has no name", "")
		}
	}
}

// checkSameRoutes finds routes that no request can reach because an equal one stands before them.
func (l *loader) checkSameRoutes() {
	routes := l.cfg.Gateway.Routes
	for i := range routes {
		for j := range i {
			a, b := &routes[i], &routes[j]
			if a.Path == b.Path && strings.EqualFold(a.Host, b.Host) && methodsMeet(a.Methods, b.Methods) {
				l.wrong(indexed("gateway.route", i), fmt.Sprintf("takes the same requests as gateway.route[%d]", j), "give it another host, path or methods")
				break
			}
		}
	}
}

func methodsMeet(a, b []string) bool {
	return len(a) == 0 && len(b) == 0 || slices.ContainsFunc(a, func(m string) bool { return slices.Contains(b, m) })
}
