package edge

import (
	"net/http"
	"net/netip"
	"strings"
	"unicode"
	"unicode/utf8"
)

// MaxTextLength is how many characters a name of a caller may have, wherever it comes from.
const MaxTextLength = 255

// IsText tells whether s can name a caller: 1 to 255 characters of UTF-8, none of them a control character. The empty
// name means unknown, and one with control characters would forge lines in logs.
func IsText(s string) bool {
	if s == "" || len(s) > utf8.UTFMax*MaxTextLength || utf8.RuneCountInString(s) > MaxTextLength {
		return false
	}
	return utf8.ValidString(s) && strings.IndexFunc(s, unicode.IsControl) < 0
}

// Field returns the value of a field that names the caller; the name is canonical. It is empty where the field is absent.
// It is not ok where there are several values, of which nobody knows which is the proxy's, or where it is no text.
func Field(h http.Header, name string) (value string, ok bool) {
	values := h[name]
	switch {
	case len(values) == 0 || len(values) == 1 && values[0] == "":
		return "", true
	case len(values) > 1 || !IsText(values[0]):
		return "", false
	}
	return values[0], true
}

// StripFrom takes out of h what an upstream might believe and nobody vouches for:
//
//   - from peers that are not trusted, the identity fields and all that tell an address, a host, a scheme or another path;
//   - from anyone, identity fields that Field does not take, and that of Forwarded and X-Forwarded-For which is not the
//     one that proxies are to use: they pass it on as the client sent it;
//   - from anyone, the aliases of all these: where header names become variables (CGI, WSGI, PHP), X_User, X.User and
//     X+User all become what X-User does, and proxies that replace X-User let them pass.
func (e *Edge) StripFrom(peer netip.Addr, h http.Header) {
	vouched := e.Trusted(peer)
	var buf [maxNameLength]byte
	for key := range h {
		name, fits := fold(key, &buf)
		if !fits {
			continue
		}
		if field, listed := e.identity[string(name)]; listed {
			if _, taken := Field(h, key); !vouched || key != field || !taken {
				delete(h, key)
			}
		} else if tellsAddress(string(name)) && (!vouched || isAlias(key) || e.isOther(key)) {
			delete(h, key)
		}
	}
}

// isOther tells whether a field is the one of Forwarded and X-Forwarded-For that is not read.
func (e *Edge) isOther(key string) bool {
	if e.forwarded {
		return key == "X-Forwarded-For"
	}
	return key == "Forwarded"
}

// isAlias tells whether a name has something else than letters, digits and hyphens.
func isAlias(key string) bool {
	for i := range len(key) {
		if c := foldByte(key[i]); c == '-' && key[i] != '-' {
			return true
		}
	}
	return false
}

// fold writes a name as the most careless server reads it: in lower case, with a hyphen for all that is neither letter nor
// digit. Names longer than the buffer are none that we know.
func fold(key string, buf *[maxNameLength]byte) (name []byte, fits bool) {
	if len(key) > len(buf) {
		return nil, false
	}
	for i := range len(key) {
		buf[i] = foldByte(key[i])
	}
	return buf[:len(key)], true
}

func foldByte(c byte) byte {
	switch {
	case 'A' <= c && c <= 'Z':
		return c | 0x20
	case 'a' <= c && c <= 'z', '0' <= c && c <= '9':
		return c
	}
	return '-'
}

// tellsAddress knows the fields by which proxies and CDNs tell a client's address, the host and scheme it asked, or the
// path before a rewrite. Frameworks read them without being told to.
func tellsAddress(folded string) bool {
	switch folded {
	case "forwarded", "x-real-ip", "client-ip", "x-client-ip", "true-client-ip", "x-cluster-client-ip", "x-remote-ip",
		"x-remote-addr", "remote-addr", "x-originating-ip", "x-original-forwarded-for", "cf-connecting-ip", "cf-connecting-ipv6",
		"cf-pseudo-ipv4", "fastly-client-ip", "fly-client-ip", "x-azure-clientip", "x-azure-socketip", "x-appengine-user-ip",
		"x-envoy-external-address", "x-original-url", "x-original-uri", "x-original-host", "x-rewrite-url", "x-host":
		return true
	}
	return strings.HasPrefix(folded, "x-forwarded-") || folded == "x-forwarded"
}
