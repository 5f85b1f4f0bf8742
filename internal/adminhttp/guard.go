package adminhttp

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"log/slog"
	"net/http"
	"net/netip"
	"strconv"
	"strings"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/internal/config"
	"github.com/sluicehq/sluice/memstore"
)

// guard asks for the bearer token, and stops listening to those who guess.
type guard struct {
	token   func() config.Secret
	log     *slog.Logger
	guesses *sluice.Limiter
}

const (
	// guessesPerMinute of one address; afterwards not even the right token is heard, else guessing would go on.
	guessesPerMinute = 10
	// guessers is how many addresses are remembered; further ones share one count.
	guessers = 10_000
)

func newGuard(token func() config.Secret, log *slog.Logger) *guard {
	store := memstore.New(memstore.Options{MaxCounters: guessers})
	return &guard{token: token, log: log, guesses: sluice.New(store, sluice.PerKey(sluice.PerMinute(guessesPerMinute)), sluice.Options{})}
}

// protect lets through who has the token.
func (g *guard) protect(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		want := g.token()
		if want == "" {
			writeProblem(w, problem{Status: http.StatusForbidden, Detail: "No token is configured: set admin.token, or SLUICE_ADMIN__TOKEN_FILE, and send it as Authorization: Bearer."})
			return
		}
		guesser := sluice.Request{Subject: sluice.Subject{User: guesserOf(r)}}
		if d, err := g.guesses.Peek(context.WithoutCancel(r.Context()), guesser); err == nil && !d.Allowed {
			w.Header().Set("Retry-After", strconv.Itoa(int(d.RetryAfter/time.Second)+1))
			writeProblem(w, problem{Status: http.StatusTooManyRequests, Detail: "Too many requests with a wrong token came from this address."})
			return
		}
		got, isBearer := bearer(r)
		if isBearer && equal(got, want.Reveal()) {
			next.ServeHTTP(w, r)
			return
		}
		_, _ = g.guesses.Check(context.WithoutCancel(r.Context()), guesser) // the answer is the same whatever it says
		if isBearer {
			g.log.WarnContext(r.Context(), "admin request with a wrong token", "from", r.RemoteAddr, "path", r.URL.Path)
		}
		w.Header().Set("WWW-Authenticate", `Bearer realm="sluice admin"`)
		writeProblem(w, problem{Status: http.StatusUnauthorized, Detail: "Send the configured token as Authorization: Bearer."})
	})
}

func bearer(r *http.Request) (token string, ok bool) {
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	return strings.TrimSpace(token), strings.EqualFold(scheme, "Bearer")
}

// equal takes the same time whatever differs, the lengths included.
func equal(got, want string) bool {
	a, b := sha256.Sum256([]byte(got)), sha256.Sum256([]byte(want))
	return subtle.ConstantTimeCompare(a[:], b[:]) == 1
}

// guesserOf is the address, or its /64, which one host can fill with addresses. The admin listener stands behind no proxy.
func guesserOf(r *http.Request) string {
	from, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return r.RemoteAddr
	}
	ip := from.Addr().Unmap().WithZone("")
	if ip.Is6() {
		if network, err := ip.Prefix(64); err == nil {
			return network.String()
		}
	}
	return ip.String()
}
