package identity

import (
	"sync"
	"time"
)

// tokenCache remembers verified tokens by their hash, so that it holds no credentials. It is cut into shards, since every
// request with a token takes a lock.
type tokenCache struct {
	shards [tokenShards]tokenShard
}

// tokenShards × tokensPerShard tokens are remembered, at about 300 bytes. With fewer, more callers than that pay for a
// signature each time; with more, memory is all that is lost.
const (
	tokenShards    = 16
	tokensPerShard = 512
)

type tokenShard struct {
	mu     sync.Mutex
	tokens map[[32]byte]verified
}

func newTokenCache() *tokenCache {
	c := &tokenCache{}
	for i := range c.shards {
		c.shards[i].tokens = map[[32]byte]verified{}
	}
	return c
}

// get returns a token that is still good.
func (c *tokenCache) get(hash [32]byte, now time.Time) (verified, bool) {
	s := &c.shards[hash[0]%tokenShards]
	s.mu.Lock()
	defer s.mu.Unlock()
	v, found := s.tokens[hash]
	if found && !v.goodAt(now) {
		delete(s.tokens, hash)
		found = false
	}
	return v, found
}

// put remembers a token, at the cost of another when the shard is full: of those that it meets first, one that is no longer
// good, else any. Maps are walked from a random place, so no client can choose whose token goes.
func (c *tokenCache) put(hash [32]byte, v verified, now time.Time) {
	s := &c.shards[hash[0]%tokenShards]
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.tokens) >= tokensPerShard {
		s.evict(now)
	}
	s.tokens[hash] = v
}

func (s *tokenShard) evict(now time.Time) {
	const looks = 8
	var victim [32]byte
	seen := 0
	for hash, v := range s.tokens {
		victim = hash
		if seen++; seen == looks || !v.goodAt(now) {
			break
		}
	}
	delete(s.tokens, victim)
}

func (v *verified) goodAt(now time.Time) bool {
	return now.Before(v.until) && v.keys == v.issuer.keys.current.Load()
}
