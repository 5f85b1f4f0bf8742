package gateway

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/sluicehq/sluice/internal/cleanpath"
	"github.com/sluicehq/sluice/internal/config"
)

// route sends requests to an upstream.
type route struct {
	host       string // lower case; empty: any
	prefix     string // without final slash; empty: any
	segments   int    // of prefix
	methods    []string
	upstream   *upstream
	strip      bool
	namespace  string
	cost       int64
	attributes map[string]string
}

// table finds routes: by host, and within a host in the order in which they are tried.
type table map[string][]*route

func newTable(routes []config.Route, upstreams map[string]*upstream) (table, []error) {
	t := table{}
	var faults []error
	for i := range routes {
		r, err := newRoute(&routes[i], upstreams)
		if err != nil {
			faults = append(faults, fmt.Errorf("gateway.route[%d]: %w", i, err))
			continue
		}
		t[r.host] = append(t[r.host], r)
	}
	for _, list := range t {
		slices.SortStableFunc(list, func(a, b *route) int {
			return cmp.Or(cmp.Compare(len(b.prefix), len(a.prefix)), compareMethods(a, b))
		})
	}
	return t, faults
}

// compareMethods puts a route for some methods before one for all of them.
func compareMethods(a, b *route) int {
	switch {
	case len(a.methods) > 0 && len(b.methods) == 0:
		return -1
	case len(a.methods) == 0 && len(b.methods) > 0:
		return 1
	default:
		return 0
	}
}

func newRoute(c *config.Route, upstreams map[string]*upstream) (*route, error) {
	r := &route{
		host: hostOf(c.Host), methods: slices.Clone(c.Methods), upstream: upstreams[c.Upstream], strip: c.StripPath,
		namespace: c.Namespace, cost: c.Cost, attributes: maps.Clone(c.Attributes),
	}
	var faults []error
	path, err := cleanpath.Clean(cmp.Or(c.Path, "/"))
	if err != nil {
		faults = append(faults, fmt.Errorf("path %q: %w", c.Path, err))
	}
	r.prefix = strings.TrimSuffix(path.Route, "/")
	r.segments = strings.Count(r.prefix, "/")
	if strings.ContainsAny(c.Path, "*{}?") {
		faults = append(faults, fmt.Errorf("path %q is a prefix, not a pattern: leave out \"*\", \"{name}\" and the query", c.Path))
	}
	if r.upstream == nil {
		faults = append(faults, fmt.Errorf("upstream %q is not among gateway.upstream: want one of %q", c.Upstream, slices.Sorted(maps.Keys(upstreams))))
	}
	if c.Cost < 0 {
		faults = append(faults, fmt.Errorf("cost is %d: want 0 for the rule's own, or more", c.Cost))
	}
	if strings.ContainsAny(c.Host, "/*:") {
		faults = append(faults, fmt.Errorf("host %q: want a plain host name, without scheme, port and wildcard", c.Host))
	}
	for _, m := range c.Methods {
		if m == "" || m != strings.ToUpper(m) {
			faults = append(faults, fmt.Errorf("method %q: write it in capitals, such as \"GET\"", m))
		}
	}
	return r, errors.Join(faults...)
}

// find returns the first route that takes the request. Without one it tells the methods that would have been taken.
func (t table) find(host, path, method string) (found *route, allow string) {
	lists := [2][]*route{t[host], nil}
	if host != "" {
		lists[1] = t[""]
	}
	for _, list := range lists {
		for _, r := range list {
			if !r.covers(path) {
				continue
			}
			if len(r.methods) == 0 || slices.Contains(r.methods, method) {
				return r, ""
			}
			if allow != "" {
				allow += ", "
			}
			allow += strings.Join(r.methods, ", ")
		}
	}
	return nil, allow
}

// covers tells whether a path lies at or below the route's, by whole segments.
func (r *route) covers(path string) bool {
	return strings.HasPrefix(path, r.prefix) && (len(path) == len(r.prefix) || path[len(r.prefix)] == '/')
}

// below takes the route's path off an escaped path.
func (r *route) below(escaped string) string {
	for range r.segments {
		i := strings.IndexByte(escaped[1:], '/')
		if i < 0 {
			return "/"
		}
		escaped = escaped[1+i:]
	}
	return escaped
}
