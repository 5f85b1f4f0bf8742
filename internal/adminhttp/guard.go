package adminhttp

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/netip"
	"strconv"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/internal/adminauth"
	"github.com/sluicehq/sluice/memstore"
)

// guard finds out who asks, and stops listening to those who guess: by their addresses, and by the account they guess at.
type guard struct {
	auth    *adminauth.Authenticator
	log     *slog.Logger
	guesses *sluice.Limiter
	tries   *tries
}

const (
	// guessesPerMinute of one address; afterwards not even the right token is heard, else guessing would go on.
	guessesPerMinute = 10
	// guessers is how many addresses are remembered; further ones share one count.
	guessers = 10_000
)

func newGuard(auth *adminauth.Authenticator, log *slog.Logger) *guard {
	store := memstore.New(memstore.Options{MaxCounters: guessers})
	guesses := sluice.New(store, sluice.PerKey(sluice.PerMinute(guessesPerMinute)), sluice.Options{})
	return &guard{auth: auth, log: log, guesses: guesses, tries: newTries(log, triedAccounts)}
}

// throttle refuses those who guessed too often, and counts what is answered with 401.
func (g *guard) throttle(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if g.tired(w, r) {
			return
		}
		watched := &statusWriter{ResponseWriter: w}
		next.ServeHTTP(watched, r)
		if watched.status == http.StatusUnauthorized {
			g.count(r)
		}
	})
}

// protect lets through who is known.
func (g *guard) protect(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if g.tired(w, r) {
			return
		}
		one := g.tryOf(r)
		if g.tries.closed(w, r, one) {
			return
		}
		actor, err := g.auth.Authenticate(r)
		if g.tries.late(w, r, one, err) {
			return
		}
		switch {
		case err == nil:
			next.ServeHTTP(w, r.WithContext(adminauth.WithActor(r.Context(), actor)))
		case errors.Is(err, adminauth.ErrNone):
			writeProblem(w, problem{Status: http.StatusForbidden, Detail: "No token is configured: set admin.token, or SLUICE_ADMIN__TOKEN_FILE, and send it as Authorization: Bearer."})
		case errors.Is(err, adminauth.ErrMissing), errors.Is(err, adminauth.ErrWrong):
			g.count(r)
			if errors.Is(err, adminauth.ErrWrong) {
				g.log.WarnContext(r.Context(), "admin request with a wrong token", "from", r.RemoteAddr, "path", r.URL.Path)
			}
			w.Header().Set("WWW-Authenticate", `Bearer realm="sluice admin"`)
			writeProblem(w, problem{Status: http.StatusUnauthorized, Detail: "Send the configured token, or one that was made for you, as Authorization: Bearer."})
		default:
			writeError(w, err)
		}
	})
}

// tryOf tells what a request tries. For the configured token anybody can send wrong ones, because it has no id to know; so that this cannot
// shut everybody out, it is counted by address alone on the node's own machine: the way in for an emergency.
func (g *guard) tryOf(r *http.Request) try {
	one := try{g.auth.Account(r), guesserOf(r)}
	if ip, err := netip.ParseAddr(one.from); err == nil && ip.IsLoopback() && one.account == adminauth.BootstrapName {
		one.account = ""
	}
	return one
}

// tired answers those who guessed too often.
func (g *guard) tired(w http.ResponseWriter, r *http.Request) bool {
	d, err := g.guesses.Peek(context.WithoutCancel(r.Context()), countedBy(guesserOf(r)))
	if err != nil || d.Allowed {
		return false
	}
	writeTooMany(w, d.RetryAfter, "Too many requests with a wrong token came from this address.")
	return true
}

func writeTooMany(w http.ResponseWriter, wait time.Duration, detail string) {
	w.Header().Set("Retry-After", strconv.Itoa(int(wait/time.Second)+1))
	writeProblem(w, problem{Status: http.StatusTooManyRequests, Detail: detail})
}

func (g *guard) count(r *http.Request) {
	_, _ = g.guesses.Check(context.WithoutCancel(r.Context()), countedBy(guesserOf(r))) // the answer is the same whatever it says
}

func countedBy(key string) sluice.Request {
	return sluice.Request{Subject: sluice.Subject{User: key}}
}

// statusWriter remembers the status.
type statusWriter struct {
	http.ResponseWriter
	status int
}

func (w *statusWriter) WriteHeader(status int) {
	w.status = status
	w.ResponseWriter.WriteHeader(status)
}

// guesserOf is the address, or its /64, which one host can fill with addresses. The admin listener stands behind no proxy.
func guesserOf(r *http.Request) string {
	from, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return r.RemoteAddr
	}
	ip := from.Addr().Unmap().WithZone("")
	if ip.Is6() && !ip.IsLoopback() {
		if network, err := ip.Prefix(64); err == nil {
			return network.String()
		}
	}
	return ip.String()
}
