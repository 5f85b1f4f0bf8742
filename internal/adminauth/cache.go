package adminauth

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/sluicehq/sluice/internal/registry"
)

const (
	// freshFor is how long a token is not looked up again: by so much a revocation is late at most.
	freshFor = time.Second
	// maxCached tokens are remembered. Beyond it all are forgotten, which costs a lookup each.
	maxCached = 1000
)

// cache remembers tokens for a moment, so that a program with a thousand calls does not make a thousand queries. Unknown ids are remembered
// as well.
type cache struct {
	from Tokens
	now  func() time.Time

	mu    sync.Mutex
	known map[string]cached
}

type cached struct {
	token registry.Token
	err   error
	until time.Time
}

func newCache(from Tokens, now func() time.Time) *cache {
	return &cache{from: from, now: now, known: map[string]cached{}}
}

// token returns the token, registry.ErrNotFound where there is none.
func (c *cache) token(ctx context.Context, id string) (registry.Token, error) {
	asked := c.now() // before the answer: it is as old as the question
	c.mu.Lock()
	found, ok := c.known[id]
	c.mu.Unlock()
	if ok && asked.Before(found.until) {
		return found.token, found.err
	}
	token, err := c.from.TokenByID(ctx, id)
	if err != nil && !errors.Is(err, registry.ErrNotFound) {
		return registry.Token{}, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.known) >= maxCached {
		clear(c.known)
	}
	c.known[id] = cached{token, err, asked.Add(freshFor)}
	return token, err
}
