package adminhttp

import (
	"context"
	"fmt"
	"hash/crc32"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluicehq/sluice/internal/adminauth"
	"github.com/sluicehq/sluice/internal/apikey"
	"github.com/sluicehq/sluice/internal/config"
	"github.com/sluicehq/sluice/internal/registry"
	"github.com/sluicehq/sluice/internal/telemetry"
)

// guarded is a guard before a door that lets everybody in. It has the configured token, and one on record.
type guarded struct {
	text, id string // of the token on record
	record   registry.Token
	asked    atomic.Int64
	hold     func() // what looking up waits for
	log      *lines
	guard    *guard
	handler  http.Handler
}

func newGuarded(t *testing.T) *guarded {
	t.Helper()
	b := &guarded{log: new(lines), hold: func() {}}
	var hash []byte
	b.text, b.id, hash = apikey.NewToken(pepper)
	b.record = registry.Token{ID: b.id, Name: "ci", Hash: hash}
	auth := adminauth.New(adminauth.Options{
		Bootstrap: func() config.Secret { return token }, Tokens: b,
		Parse: func(text string) (string, []byte, bool) {
			id, secret, ok := apikey.ParseToken(text)
			return id, apikey.Hash(pepper, secret), apikey.GenuineToken(pepper, id) && ok
		},
	})
	b.guard = newGuard(auth, telemetry.Logger(b.log, "json", new(slog.LevelVar)))
	b.handler = b.guard.protect(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	return b
}

func (b *guarded) TokenByID(_ context.Context, id string) (registry.Token, error) {
	b.asked.Add(1)
	b.hold()
	if id != b.id {
		return registry.Token{}, registry.ErrNotFound
	}
	return b.record, nil
}

// try sends a token from an address.
func (b *guarded) try(t *testing.T, from, text string) *httptest.ResponseRecorder {
	t.Helper()
	return tryAt(t, b.handler, from, text)
}

func tryAt(t *testing.T, door http.Handler, from, text string) *httptest.ResponseRecorder {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/v1/whoami", nil)
	r.RemoteAddr = from + ":4711"
	if text != "" {
		r.Header.Set("Authorization", "Bearer "+text)
	}
	w := httptest.NewRecorder()
	door.ServeHTTP(w, r)
	return w
}

func (b *guarded) want(t *testing.T, from, text string, status int) {
	t.Helper()
	if w := b.try(t, from, text); w.Code != status {
		t.Fatalf("%q from %s: %d, want %d: %s", text, from, w.Code, status, w.Body)
	}
}

// answer is all that a caller sees.
func answer(w *httptest.ResponseRecorder) string { return fmt.Sprintln(w.Code, w.Header(), w.Body) }

// close has an account guessed at from five addresses.
func (b *guarded) close(t *testing.T, wrong string) {
	t.Helper()
	for i := range triesPerMinute {
		b.want(t, fmt.Sprintf("198.51.100.%d", i+1), wrong, http.StatusUnauthorized)
	}
}

// guessAt is a token of the right form for that id, with another secret.
func guessAt(id string) string {
	text, own, _ := apikey.NewToken("a pepper of somebody else's")
	body := strings.Replace(text[:strings.LastIndex(text, "_")], own, id, 1)
	return fmt.Sprintf("%s_%08x", body, crc32.ChecksumIEEE([]byte(body)))
}

// accountsOf are a right and a wrong text for each kind of account.
func (b *guarded) accountsOf() map[string][2]string {
	return map[string][2]string{"on record": {b.text, guessAt(b.id)}, "configured": {token, "a-guess"}}
}

const owner, stranger = "192.0.2.1", "203.0.113.1"

func TestTries_AfterFiveFromAnywhereAnAccountIsHeardOnlyWhereItWasRight(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"on record", "configured"} {
		synctest.Test(t, func(t *testing.T) {
			b := newGuarded(t)
			texts := b.accountsOf()
			right, wrong := texts[kind][0], texts[kind][1]
			b.want(t, owner, right, http.StatusOK)
			b.close(t, wrong)

			sixth, seventh := b.try(t, "198.51.100.6", wrong), b.try(t, "198.51.100.7", right)
			if sixth.Code != http.StatusTooManyRequests || sixth.Header().Get("Retry-After") != "61" {
				t.Errorf("%s, the sixth: %d with Retry-After %q, want 429 with 61", kind, sixth.Code, sixth.Header().Get("Retry-After"))
			}
			if answer(sixth) != answer(seventh) {
				t.Errorf("%s: a wrong token is answered\n%s\nand the right one\n%s", kind, answer(sixth), answer(seventh))
			}
			b.want(t, owner, wrong, http.StatusUnauthorized)
			b.want(t, owner, right, http.StatusOK)
			for other, both := range texts {
				if other != kind {
					b.want(t, stranger, both[0], http.StatusOK)
				}
			}
			<-time.After(time.Minute - time.Millisecond)
			b.want(t, "198.51.100.7", right, http.StatusTooManyRequests)
			<-time.After(time.Millisecond)
			b.want(t, "198.51.100.7", right, http.StatusOK)
		})
	}
}

func TestTries_OfTheConfiguredTokenCannotCloseItOnTheMachineItself(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newGuarded(t)
		b.close(t, "a-guess")
		b.close(t, guessAt(b.id))
		b.want(t, stranger, token, http.StatusTooManyRequests)
		for _, local := range []string{"127.0.0.1", "[::1]"} {
			b.want(t, local, token, http.StatusOK)
			b.want(t, local, b.text, http.StatusTooManyRequests) // others have ids, which strangers do not know
			for range guessesPerMinute {
				b.want(t, local, "a-guess", http.StatusUnauthorized)
			}
			b.want(t, local, token, http.StatusTooManyRequests)
		}
	})
}

func TestTries_ThatAreRefusedCountForNobody(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newGuarded(t)
		b.close(t, guessAt(b.id))
		for range 3 * guessesPerMinute { // more than either count allows
			b.want(t, stranger, b.text, http.StatusTooManyRequests)
		}
		b.want(t, stranger, token, http.StatusOK)
		<-time.After(time.Minute)
		b.want(t, stranger, b.text, http.StatusOK)
	})
}

func TestTries_APlaceIsForgottenAfterAnHour(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newGuarded(t)
		b.want(t, owner, b.text, http.StatusOK)
		<-time.After(rightFor - time.Second)
		b.close(t, guessAt(b.id))
		b.want(t, owner, guessAt(b.id), http.StatusUnauthorized) // which does not make the hour longer
		<-time.After(time.Second)
		b.want(t, owner, b.text, http.StatusTooManyRequests)
	})
}

func TestTries_FromAPlaceThatIsKnownCountForItsAddressAndForTheAccount(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newGuarded(t)
		b.want(t, owner, b.text, http.StatusOK)
		for range guessesPerMinute {
			b.want(t, owner, guessAt(b.id), http.StatusUnauthorized)
		}
		b.want(t, owner, b.text, http.StatusTooManyRequests)
		b.want(t, owner, token, http.StatusTooManyRequests)
		b.want(t, stranger, b.text, http.StatusTooManyRequests)
	})
}

func TestTries_ShowNothingAboutWhichIdsExist(t *testing.T) {
	t.Parallel()
	_, handedOut, _ := apikey.NewToken(pepper) // and on record no more
	_, invented, _ := apikey.NewToken("a pepper of somebody else's")
	seen := map[string]string{}
	for name, id := range map[string]string{"on record": "", "handed out": handedOut, "invented": invented} {
		synctest.Test(t, func(t *testing.T) {
			b := newGuarded(t)
			b.want(t, owner, b.text, http.StatusOK)
			if id == "" {
				id = b.id
			}
			b.close(t, guessAt(id))
			before := b.asked.Load()
			for range 3 {
				<-time.After(2 * time.Second) // longer than tokens are remembered
				seen[name] += answer(b.try(t, stranger, guessAt(id)))
			}
			if asked := b.asked.Load() - before; asked != 0 {
				t.Errorf("%s: looked up %d times while it was closed", name, asked)
			}
			b.want(t, stranger, token, http.StatusOK) // another account
		})
	}
	if seen["on record"] != seen["handed out"] || seen["on record"] != seen["invented"] || !strings.HasPrefix(seen["on record"], "429") {
		t.Errorf("answers tell the ids apart: %v", seen)
	}
}

func TestTries_AFloodOfInventedIdsIsBoundedAndLeavesKnownPlacesAlone(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newGuarded(t)
		const most, shards = 640, 64
		b.guard.tries = newTries(slog.New(slog.DiscardHandler), most)
		b.want(t, owner, b.text, http.StatusOK)
		heard := 0
		for i := range 5 * most {
			_, id, _ := apikey.NewToken("a pepper of somebody else's")
			if w := b.try(t, fmt.Sprintf("10.0.%d.%d", i>>8, i&255), guessAt(id)); w.Code == http.StatusUnauthorized {
				heard++
			}
		}
		if bound := most + shards*triesPerMinute; heard > bound {
			t.Errorf("%d of %d were counted by themselves, want at most %d", heard, 5*most, bound)
		}
		b.want(t, owner, b.text, http.StatusOK)
		<-time.After(2 * time.Minute)
		b.want(t, stranger, b.text, http.StatusOK)
	})
}

func TestTries_OfManyAtOnceNoMoreAreToldThanOneAfterTheOther(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newGuarded(t)
		gate := make(chan struct{})
		b.hold = func() { <-gate }
		const many = 50
		wrong := guessAt(b.id)
		var told atomic.Int64
		var all sync.WaitGroup
		for i := range many {
			all.Go(func() {
				if w := b.try(t, fmt.Sprintf("198.51.100.%d", i), wrong); w.Code == http.StatusUnauthorized {
					told.Add(1)
				} else if w.Code != http.StatusTooManyRequests {
					t.Errorf("got %d", w.Code)
				}
			})
		}
		synctest.Wait()
		if asked := b.asked.Load(); asked != many {
			t.Errorf("%d are being looked up, want all %d", asked, many)
		}
		close(gate)
		all.Wait()
		if told.Load() != triesPerMinute {
			t.Errorf("%d were told that they are wrong, want %d", told.Load(), triesPerMinute)
		}
	})
}

func TestTries_TheRightOneIsNotHeardWhenTheAccountWasClosedMeanwhile(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newGuarded(t)
		gate := make(chan struct{})
		b.hold = func() {
			if b.asked.Load() == 1 {
				<-gate
			}
		}
		var right *httptest.ResponseRecorder
		var sent sync.WaitGroup
		sent.Go(func() { right = b.try(t, stranger, b.text) })
		synctest.Wait()
		b.close(t, guessAt(b.id))
		close(gate)
		sent.Wait()
		if right.Code != http.StatusTooManyRequests {
			t.Errorf("got %d, want 429", right.Code)
		}
		b.want(t, stranger, b.text, http.StatusTooManyRequests) // and it is no known place
	})
}

func TestTries_LogARefusedAccountOnceAMinute(t *testing.T) {
	t.Parallel()
	for kind, name := range map[string]string{"on record": "", "configured": "admin.token"} {
		synctest.Test(t, func(t *testing.T) {
			b := newGuarded(t)
			wrong := b.accountsOf()[kind][1]
			if name == "" {
				name = b.id[:shownOfID] + "…"
			}
			for range 2 {
				b.close(t, wrong)
				for i := range 20 {
					b.want(t, fmt.Sprintf("203.0.113.%d", i), wrong, http.StatusTooManyRequests)
				}
				<-time.After(time.Minute)
			}
			if got := strings.Count(b.log.String(), `"account":"`+name+`"`); got != 2 {
				t.Errorf("%s: %d lines in two minutes, want 2:\n%s", kind, got, b.log)
			}
			if strings.Contains(b.log.String(), b.id) || strings.Contains(b.log.String(), wrong) {
				t.Errorf("%s: the log has the whole id, or what was sent:\n%s", kind, b.log)
			}
		})
	}
}

func TestTries_HoldForTokensInTheDatabase(t *testing.T) {
	t.Parallel()
	b := newRegistryBed(t, setup{})
	made := into[shownOnce[registry.Token]](t, b.do(t, "POST", "/v1/tokens", `{"name":"ci","grants":[{"namespace":"*","role":"viewer"}]}`, http.StatusCreated))
	want := func(from, text string, status int) {
		t.Helper()
		if w := tryAt(t, b.handler, from, text); w.Code != status {
			t.Fatalf("from %s: %d, want %d: %s", from, w.Code, status, w.Body)
		}
	}
	want(owner, made.Secret, http.StatusOK)
	for i := range triesPerMinute {
		want(fmt.Sprintf("198.51.100.%d", i), guessAt(made.Body.ID), http.StatusUnauthorized)
	}
	want(stranger, made.Secret, http.StatusTooManyRequests)
	want(stranger, token, http.StatusOK)
	want(owner, made.Secret, http.StatusOK)
}
