package identity

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/sluicehq/sluice/internal/config"
)

// keyStore has the keys of one issuer. Requests only read what is there and may ask for more; run alone loads, so that no
// request waits for an issuer, and nothing that clients send makes it load more often than the cooldown allows.
type keyStore struct {
	issuer  string
	place   string                                // where the keys are; empty: here, for good
	load    func(context.Context) ([]byte, error) // nil: the same
	log     *slog.Logger
	now     func() time.Time
	asked   chan struct{} // capacity 1
	current atomic.Pointer[keySet]
	status  atomic.Pointer[KeyStatus]
}

// KeyStatus tells how an issuer's keys were had last.
type KeyStatus struct {
	Issuer string
	// Keys is how many are usable; 0: none of the issuer's tokens can be verified.
	Keys int
	// Loaded is when they were last had, Asked when that was last tried; zero: never.
	Loaded, Asked time.Time
	// Err is why the last attempt brought nothing; the keys from before stay.
	Err error
}

const (
	// cooldown is the least time between two loads of an issuer's keys, whatever came back. Tokens with unknown keys can be
	// made by anyone; were it shorter, their maker could turn us against the issuer.
	cooldown = 10 * time.Second
	// refresh is how often keys are loaded without being asked for. A key that the issuer took back is believed that long.
	refresh = 5 * time.Minute
	// retry is how soon a load that failed is repeated without being asked for.
	retry = 30 * time.Second
	// loadTimeout bounds one load.
	loadTimeout = 5 * time.Second
)

func newKeyStore(cfg config.Issuer, opts Options) (*keyStore, error) {
	s := &keyStore{issuer: cfg.Issuer, log: opts.Log, now: opts.Now, asked: make(chan struct{}, 1)}
	s.status.Store(&KeyStatus{Issuer: cfg.Issuer})
	given := 0
	for _, place := range []string{cfg.JWKSURL, cfg.JWKSFile, cfg.Secret.Reveal()} {
		given += min(len(place), 1)
	}
	switch {
	case given != 1:
		return nil, errors.New("give one of jwks_url, jwks_file and secret")
	case cfg.Secret != "":
		s.current.Store(sharedSecret(cfg.Secret.Reveal()))
		s.status.Store(&KeyStatus{Issuer: cfg.Issuer, Keys: 1, Loaded: s.now(), Asked: s.now()})
		return s, nil
	case cfg.JWKSFile != "":
		s.place, s.load = cfg.JWKSFile, fileLoader(cfg.JWKSFile)
		return s, s.loadOnce(context.Background())
	}
	var err error
	s.place = cfg.JWKSURL
	s.load, err = urlLoader(cfg.JWKSURL, opts.Client)
	return s, err
}

// ask tells run that a key is missing. It never blocks.
func (s *keyStore) ask() {
	select {
	case s.asked <- struct{}{}:
	default: // it knows already
	}
}

// run loads the keys at once, then at intervals and when asked, until ctx ends.
func (s *keyStore) run(ctx context.Context) {
	if s.load == nil {
		return
	}
	// Positive where the keys were just read or inherited.
	pause := cooldown - s.now().Sub(s.status.Load().Asked)
	for wait(ctx, pause, nil) {
		select {
		case <-s.asked: // this load is the answer
		default:
		}
		next := refresh
		if err := s.loadOnce(ctx); err != nil {
			next = retry
			s.log.WarnContext(ctx, "issuer's keys not loaded", "issuer", s.issuer, "keys_kept", s.status.Load().Keys, "error", err)
		}
		if !wait(ctx, cooldown, nil) {
			return
		}
		// Nodes that started together need not come back together.
		next += time.Duration(rand.Int64N(int64(next / 10))) //nolint:gosec // jitter is no secret
		if !wait(ctx, next-cooldown, s.asked) {
			return
		}
		pause = 0
	}
}

// wait waits for d, or for something on early; it returns false when ctx ends.
func wait(ctx context.Context, d time.Duration, early <-chan struct{}) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-early:
	case <-ctx.Done():
	}
	return ctx.Err() == nil
}

// loadOnce replaces the keys, or leaves them as they are and tells why.
func (s *keyStore) loadOnce(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, loadTimeout)
	defer cancel()
	last := *s.status.Load()
	last.Asked = s.now()
	raw, err := s.load(ctx)
	var keys *keySet
	if err == nil {
		keys, err = parseKeySet(raw)
	}
	last.Err = err
	if err == nil {
		last.Keys, last.Loaded = len(keys.keys), last.Asked
		// Where nothing changed the set stays the same one, and tokens that were verified with it stay so.
		if old := s.current.Load(); old == nil || !bytes.Equal(old.raw, raw) {
			s.current.Store(keys)
		}
	}
	s.status.Store(&last)
	return err
}

// inherit takes over what another store has from the same place.
func (s *keyStore) inherit(old *keyStore) {
	if s.place != "" && s.place == old.place && s.issuer == old.issuer && s.status.Load().Loaded.Before(old.status.Load().Loaded) {
		s.current.Store(old.current.Load())
		s.status.Store(old.status.Load())
	}
}
