package directory

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/internal/apikey"
	"github.com/sluicehq/sluice/internal/registry"
)

func TestVerify_TakesKeysThatAreValidNow(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l, db, end := begin(t, LiveOptions{})
		defer end()
		text, id, hash := apikey.New(pepper)
		newer, newHash := apikey.Renew(pepper, id)
		key := registry.Key{ID: id, Owner: "ann", Tenant: "acme", Hashes: [][]byte{newHash, hash}, OldUntil: time.Now().Add(time.Minute), ExpiresAt: time.Now().Add(time.Hour)}
		db.set("api_key", id, registry.Record{Tier: "pro", Key: &key})
		want := sluice.Subject{APIKey: id, User: "ann", Tenant: "acme", Tier: "pro"}
		for name, text := range map[string]string{"old": text, "new": newer} {
			if got, ok := l.Verify(t.Context(), text); !ok || fmt.Sprint(got) != fmt.Sprint(want) {
				t.Errorf("%s secret: %+v %v, want %+v", name, got, ok, want)
			}
		}
		other, _ := apikey.Renew(pepper, id)
		unknown, _, _ := apikey.New(pepper)
		forged, _, _ := apikey.New(pepper + "!")
		for name, text := range map[string]string{"wrong secret": other, "unknown": unknown, "forged": forged, "junk": "slc_junk", "none": ""} {
			if got, ok := l.Verify(t.Context(), text); ok {
				t.Errorf("%s was taken for %+v", name, got)
			}
		}
		time.Sleep(time.Minute) //nolint:forbidigo // the bubble's clock
		if _, ok := l.Verify(t.Context(), text); ok {
			t.Error("the old secret is valid after its time")
		}
		if _, ok := l.Verify(t.Context(), newer); !ok {
			t.Error("the new secret is not valid")
		}
		time.Sleep(time.Hour) //nolint:forbidigo // the bubble's clock
		if _, ok := l.Verify(t.Context(), newer); ok {
			t.Error("an expired key is valid")
		}
	})
}

func TestVerify_EndsWithTheNoticeOfRevocation(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l, db, end := begin(t, LiveOptions{})
		defer end()
		text, id, hash := apikey.New(pepper)
		db.set("api_key", id, registry.Record{Key: &registry.Key{ID: id, Owner: "ann", Hashes: [][]byte{hash}}})
		if _, ok := l.Verify(t.Context(), text); !ok {
			t.Fatal("not valid")
		}
		db.set("api_key", id, registry.Record{Key: &registry.Key{ID: id, Owner: "ann", Hashes: [][]byte{hash}, RevokedAt: time.Now()}})
		l.Notice(registry.Notice{Revision: 2, Kind: registry.KindKey, Who: registry.Who{Dimension: "api_key", ID: id}})
		if _, ok := l.Verify(t.Context(), text); ok {
			t.Error("valid after its revocation")
		}
	})
}

func TestVerify_UnknownKeysCannotFloodTheDatabase(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l, db, end := begin(t, LiveOptions{})
		defer end()
		var all sync.WaitGroup
		for range 2000 { // of another installation
			text, _, _ := apikey.New(pepper + "!")
			all.Go(func() { l.Verify(t.Context(), text) })
		}
		all.Wait()
		if db.asked() != 0 {
			t.Errorf("%d questions about keys that were never handed out", db.asked())
		}
		valid, id, hash := apikey.New(pepper)
		db.set("api_key", id, registry.Record{Key: &registry.Key{ID: id, Owner: "ann", Hashes: [][]byte{hash}}})
		for i := range 5000 { // handed out, and deleted since: 1,000 a second
			text, _, _ := apikey.New(pepper)
			all.Go(func() { l.Verify(t.Context(), text) })
			time.Sleep(time.Millisecond) //nolint:forbidigo // the bubble's clock
			if i == 4500 {
				if _, ok := l.Verify(t.Context(), valid); !ok {
					t.Error("a valid key was refused meanwhile")
				}
			}
		}
		all.Wait()
		if n := db.asked(); n > 60 {
			t.Errorf("%d questions in 5s, want about 10 a second", n)
		}
	})
}

func TestUses_AreToldInBatchesAndKeptWhileTheDatabaseIsDown(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l, db, end := begin(t, LiveOptions{})
		text, id, hash := apikey.New(pepper)
		db.set("api_key", id, registry.Record{Key: &registry.Key{ID: id, Owner: "ann", Hashes: [][]byte{hash}}})
		use := func() {
			for range 10 {
				l.Verify(t.Context(), text)
			}
		}
		use()
		time.Sleep(6 * time.Second) //nolint:forbidigo // the bubble's clock
		if got := db.used(id); got.Count != 10 || got.Last.IsZero() {
			t.Errorf("told %+v, want 10 uses", got)
		}
		db.fail(errors.New("down"))
		use()
		time.Sleep(6 * time.Second) //nolint:forbidigo // the bubble's clock
		db.fail(nil)
		use()
		end() // what is left is told at the end
		if got := db.used(id).Count; got != 30 {
			t.Errorf("%d uses told at the end, want 30", got)
		}
		for i := range maxUses + 5 {
			l.uses.add(fmt.Sprint(i), time.Now())
		}
		if got := l.Stats().UsesDropped; got != 5 {
			t.Errorf("%d uses dropped beyond the bound, want 5", got)
		}
	})
}
