// Command keys is make bar-keys: it dumps a database with API keys and tokens in it and tries everything in the dump as a key, and it
// measures whether the time of a refusal tells if an id is on record. Both are tried on planted faults first, which must be found.
package main

import (
	"context"
	"fmt"
	"time"

	"github.com/sluicehq/sluice/bench/internal/bar"
	"github.com/sluicehq/sluice/internal/apikey"
	"github.com/sluicehq/sluice/internal/directory"
	"github.com/sluicehq/sluice/internal/postgres"
	"github.com/sluicehq/sluice/internal/registry"
	"github.com/sluicehq/sluice/internal/testpg"
	"github.com/sluicehq/sluice/internal/testredis"
)

const (
	pepper = "the pepper of bar-keys, which is not in the database"
	keys   = 500
	tokens = 100
)

var (
	root = registry.Actor{Name: "root", Grants: []registry.Grant{{Namespace: "*", Role: registry.Admin}}}
	by   = registry.Edit{Actor: "bar", Reason: "bar-keys"}
)

func main() {
	b := bar.New("bar-keys")
	main := testredis.Program()
	defer main.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	w, err := newWorld(ctx, testpg.Start(main, testpg.Options{}).Database(main))
	if err != nil {
		b.Fatal(err)
	}
	defer w.close()
	if err := dump(ctx, b, w); err != nil {
		b.Fatal(err)
	}
	timing(ctx, b, w)
	b.End()
}

// world is a database with keys in it, and a directory on it.
type world struct {
	db    *postgres.DB
	live  *directory.Live
	place *testpg.Database
	ids   []string
	texts []string // of keys and tokens, also of those that were rotated
	end   context.CancelFunc
	ended chan struct{}
}

func newWorld(ctx context.Context, place *testpg.Database) (*world, error) {
	db, err := postgres.Open(ctx, postgres.Options{URL: place.URL()})
	if err != nil {
		return nil, err
	}
	w := &world{db: db, place: place, live: directory.NewLive(directory.New(nil), db, directory.LiveOptions{Pepper: pepper, Fresh: time.Hour}), ended: make(chan struct{})}
	if err := w.populate(ctx); err != nil {
		return nil, err
	}
	ctx, w.end = context.WithCancel(ctx)
	go func() {
		defer close(w.ended)
		_ = w.live.Run(ctx)
	}()
	return w, nil
}

func (w *world) close() {
	w.end()
	<-w.ended
	w.db.Close()
}

// populate makes keys, some of them rotated or revoked, and tokens.
func (w *world) populate(ctx context.Context) error {
	db := w.db.As(root)
	for i := range keys {
		text, id, hash := apikey.New(pepper)
		w.ids, w.texts = append(w.ids, id), append(w.texts, text)
		if _, err := db.CreateKey(ctx, registry.Key{ID: id, Name: fmt.Sprint("key ", i), Owner: fmt.Sprint("user-", i), Hashes: [][]byte{hash}}, by); err != nil {
			return err
		}
		switch i % 10 {
		case 1:
			newer, newHash := apikey.Renew(pepper, id)
			w.texts = append(w.texts, newer)
			if _, err := db.RotateKey(ctx, id, newHash, time.Now().Add(time.Hour), by); err != nil {
				return err
			}
		case 2:
			if _, err := db.RevokeKey(ctx, id, by); err != nil {
				return err
			}
		}
	}
	for i := range tokens {
		text, id, hash := apikey.NewToken(pepper)
		w.texts = append(w.texts, text)
		if _, err := db.CreateToken(ctx, registry.Token{ID: id, Name: fmt.Sprint("token ", i), Grants: root.Grants, Hash: hash}, by); err != nil {
			return err
		}
	}
	return nil
}
