package adminhttp

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/internal/adminauth"
	"github.com/sluicehq/sluice/memstore"
)

// tries count wrong tokens by the account they are for, whatever addresses they come from: who guesses from many is slowed as well. Places
// where the account was right lately are heard all the same, so that whoever knows a token's id cannot lock its owner out. Ids that nobody
// has are counted like others, because a difference would tell which exist. Each node counts for itself.
type tries struct {
	log   *slog.Logger
	wrong *sluice.Limiter
	told  *sluice.Limiter
	right *places
}

// try is a request for an account; that is empty where the request has no token.
type try struct{ account, from string }

const (
	// triesPerMinute of one account. More would help only who guesses; fewer would refuse an operator who takes the wrong token a few times.
	triesPerMinute = 5
	// triedAccounts are counted, in 30 MB at most; further ones share one count. It is what all addresses that are counted may try in a
	// minute, so inventing ids does not fill this sooner than that: fewer would let a few addresses close all accounts to new places.
	triedAccounts = guessers * guessesPerMinute
	// toldAccounts are logged once a minute each; of further ones some are not.
	toldAccounts = 1000
	// shownOfID is enough to find a token in the list.
	shownOfID = 8
)

// newTries counts as many accounts as given, which is triedAccounts.
func newTries(log *slog.Logger, most int) *tries {
	// By a log, which is exact: an account is heard again a minute after the first of the tries.
	perMinute := func(n int64, accounts int) *sluice.Limiter {
		limit := sluice.Limit{Algorithm: sluice.SlidingLog, Limit: n, Window: time.Minute}
		return sluice.New(memstore.New(memstore.Options{MaxCounters: accounts}), sluice.PerKey(limit), sluice.Options{})
	}
	return &tries{log: log, wrong: perMinute(triesPerMinute, most), told: perMinute(1, toldAccounts), right: newPlaces()}
}

// closed answers a try for an account at which too many guessed, except from places where it was right.
func (t *tries) closed(w http.ResponseWriter, r *http.Request, one try) bool {
	if one.account == "" || t.right.know(one, time.Now()) {
		return false
	}
	d, err := t.wrong.Peek(context.WithoutCancel(r.Context()), countedBy(one.account))
	if err != nil || d.Allowed {
		return false
	}
	t.refuse(w, r, one, d.RetryAfter)
	return true
}

// late takes note of how a try ended, and answers one before whose end the account was closed by others: of many that are sent at once no
// more are told the outcome than of those sent one after the other. Right or wrong makes no difference to the answer, nor to what is counted.
func (t *tries) late(w http.ResponseWriter, r *http.Request, one try, err error) bool {
	switch {
	case one.account == "":
		return false
	case err == nil:
		if t.closed(w, r, one) {
			return true
		}
		t.right.remember(one, time.Now())
		return false
	case !errors.Is(err, adminauth.ErrWrong):
		return false
	}
	d, err := t.wrong.Check(context.WithoutCancel(r.Context()), countedBy(one.account))
	if err != nil || d.Allowed || t.right.know(one, time.Now()) {
		return false
	}
	t.refuse(w, r, one, d.RetryAfter)
	return true
}

func (t *tries) refuse(w http.ResponseWriter, r *http.Request, one try, wait time.Duration) {
	if d, err := t.told.Check(context.WithoutCancel(r.Context()), countedBy(one.account)); err == nil && d.Allowed {
		t.log.WarnContext(r.Context(), "too many wrong tokens for one account; it is heard only where it was right within the hour", "account", shortened(one.account), "from", r.RemoteAddr)
	}
	writeTooMany(w, wait, "Too many wrong tokens were sent for this account. Wait, or ask from an address where it was used within the last hour.")
}

// shortened is an account as the log names it. Ids have only letters and digits, so nothing can be put into a line by one.
func shortened(account string) string {
	if account == adminauth.BootstrapName || len(account) <= shownOfID {
		return account
	}
	return account[:shownOfID] + "…"
}
