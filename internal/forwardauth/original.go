package forwardauth

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/sluicehq/sluice/internal/cleanpath"
)

// original is the request that a proxy tells of.
type original struct{ route, method string }

// errSameQuery: where Caddy's forward_auth is given a path without query, it asks with the client's.
var errSameQuery = errors.New("the forward-auth URL has the query of the original request: have the proxy call it with a query of its own, or with a bare \"?\"")

// The fields in which proxies tell it: Caddy and Traefik the first, nginx and its ingress controller the others.
var (
	methodFields = []string{"X-Forwarded-Method", "X-Original-Method"}
	uriFields    = []string{"X-Forwarded-Uri", "X-Original-Uri", "X-Original-Url"}
)

var (
	errNoURI    = errors.New("the original request is not told: have the proxy set X-Forwarded-Uri or X-Original-URI")
	errNoMethod = errors.New("the original method is not told: have the proxy set X-Forwarded-Method or X-Original-Method")
	errCapitals = errors.New("the method is not written in capitals")
)

// readOriginal reads what the proxy told. A proxy sets its own fields and hands on the others as the client sent them, so
// where two are there and do not say the same, one of them is a lie.
func readOriginal(h http.Header) (original, error) {
	var o original
	method, err := agreed(h, methodFields, func(s string) (string, error) { return s, nil })
	if err != nil {
		return o, err
	}
	route, err := agreed(h, uriFields, routeOf)
	switch {
	case err != nil:
		return o, err
	case route == "":
		return o, errNoURI
	case method == "":
		return o, errNoMethod
	case method != strings.ToUpper(method):
		return o, errCapitals
	}
	return original{route, method}, nil
}

// sameQuery tells whether the query that this door was asked with is the client's own: it must not choose anything.
func sameQuery(h http.Header, asked string) bool {
	if asked == "" {
		return false
	}
	for _, name := range uriFields {
		for _, uri := range h[name] {
			if _, query, _ := strings.Cut(uri, "?"); query == asked {
				return true
			}
		}
	}
	return false
}

// agreed returns what all fields that are there say. Empty ones are not there.
func agreed(h http.Header, fields []string, read func(string) (string, error)) (said string, err error) {
	by := ""
	for _, name := range fields {
		for _, value := range h[name] {
			if value == "" {
				continue
			}
			text, err := read(value)
			switch {
			case err != nil:
				return "", fmt.Errorf("%s: %w", name, err)
			case by != "" && text != said:
				return "", fmt.Errorf("%s and %s do not agree: have the proxy set one and delete the other", by, name)
			}
			said, by = text, name
		}
	}
	return said, nil
}

// routeOf is the path that rules see, of a path with query or of a whole URL.
func routeOf(uri string) (string, error) {
	for _, scheme := range []string{"http://", "https://"} {
		if rest, whole := strings.CutPrefix(uri, scheme); whole {
			i := strings.IndexAny(rest, "/?#")
			if i < 0 || rest[i] != '/' {
				return "/", nil
			}
			uri = rest[i:]
		}
	}
	if i := strings.IndexAny(uri, "?#"); i >= 0 {
		uri = uri[:i]
	}
	path, err := cleanpath.Clean(uri)
	return path.Route, err
}

// query is what the proxy's configuration asks for, in the URL it calls.
type query struct {
	namespace string
	cost      int64
	denied    int // 0: the rule's own status
}

func readQuery(raw string, denied int) (query, error) {
	q := query{denied: denied}
	if raw == "" {
		return q, nil
	}
	values, err := url.ParseQuery(raw)
	if err != nil {
		return q, errors.New("the query of the forward-auth URL cannot be read")
	}
	for name, list := range values {
		switch {
		case len(list) > 1:
			return q, fmt.Errorf("%q stands twice in the forward-auth URL", name)
		case name == "namespace":
			q.namespace = list[0]
		case name == "cost":
			if q.cost, err = strconv.ParseInt(list[0], 10, 64); err != nil || q.cost < 1 {
				return q, fmt.Errorf("cost=%q in the forward-auth URL: want a whole number from 1", list[0])
			}
		case name == "denied":
			status, err := strconv.Atoi(list[0])
			if err != nil || status < 400 || status > 499 {
				return q, fmt.Errorf("denied=%q in the forward-auth URL: want a status from 400 to 499", list[0])
			}
			q.denied = status
		default:
			return q, fmt.Errorf("%q in the forward-auth URL is not known: want namespace, cost or denied", name)
		}
	}
	return q, nil
}
