package gateway

import (
	"net/http"
	"net/http/httputil"
	"net/netip"
	"strings"
)

// fieldMode is ours alone: an upstream that sent it would speak for the gateway.
const fieldMode = "Sluice-Mode"

// limitFields are those in which servers speak of limits, in all dialects that are met.
var limitFields = []string{
	"Ratelimit", "Ratelimit-Policy", "Ratelimit-Limit", "Ratelimit-Remaining", "Ratelimit-Reset",
	"X-Ratelimit-Limit", "X-Ratelimit-Remaining", "X-Ratelimit-Reset", "X-Ratelimit-Cost", "X-Ratelimit-Used", "X-Ratelimit-Resource",
}

// closeAfterChunks ends a connection with the answer to a chunked request. net/http drops a Content-Length that came with it
// without a word; whoever stands before us may have believed that one, and take for the body what we would take for the
// next request.
func closeAfterChunks(h http.Header, chunked bool) {
	if chunked {
		h["Connection"] = []string{"close"}
	}
}

// tellForwarding tells the upstream where the request came from. What a trusted proxy said is kept and added to;
// what anyone else said is gone.
func tellForwarding(pr *httputil.ProxyRequest, identity Identity, peer netip.Addr) {
	in, out := pr.In.Header, pr.Out.Header
	trusted := identity.Trusted(peer)
	if trusted {
		restore(out, in, "X-Forwarded-For", "Forwarded")
	}
	identity.Strip(peer, out)
	pr.SetXForwarded()
	if !trusted {
		return
	}
	restore(out, in, "X-Forwarded-Host", "X-Forwarded-Proto")
	if hops := out["Forwarded"]; len(hops) > 0 {
		out["Forwarded"] = []string{strings.Join(hops, ", ") + ", for=" + forwardedNode(peer)}
	}
}

// restore copies fields that httputil took out or SetXForwarded replaced.
func restore(out, in http.Header, names ...string) {
	for _, name := range names {
		if said, ok := in[name]; ok {
			out[name] = said
		}
	}
}

// forwardedNode writes an address as in RFC 7239.
func forwardedNode(addr netip.Addr) string {
	if addr.Is4() {
		return addr.String()
	}
	return `"[` + addr.String() + `]"`
}
