package adminhttp

import (
	"slices"
	"sync"
	"time"
)

const (
	// rightFor is how long a place is known. Longer would hear more of those who guess from there; shorter would forget operators at lunch.
	rightFor = time.Hour
	// placesOfAccount are known, and rightAccounts with any: 12 MB at most. Beyond either the one that was right longest ago is forgotten.
	// The first is for each account by itself, so that who has a token and many addresses makes room at his own cost only.
	placesOfAccount = 64
	rightAccounts   = 1000
)

// places remember from where accounts were right. Only the right token adds to them. They are safe for concurrent use.
type places struct {
	mu sync.Mutex
	// last is by account and place together, so that a look takes the same work whether the account was ever right or not.
	last map[try]time.Time
	// of has each account's places, the one that was right longest ago first.
	of map[string][]string
}

func newPlaces() *places { return &places{last: map[try]time.Time{}, of: map[string][]string{}} }

// know tells whether the account was right from there lately.
func (p *places) know(one try, now time.Time) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	last, ok := p.last[one]
	return ok && now.Sub(last) < rightFor
}

// remember notes that the account was right from there.
func (p *places) remember(one try, now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	list, known := p.of[one.account]
	if !known && len(p.of) >= rightAccounts {
		p.forgetAccount()
	}
	if i := slices.Index(list, one.from); i >= 0 {
		list = slices.Delete(list, i, i+1)
	} else if len(list) >= placesOfAccount {
		delete(p.last, try{one.account, list[0]})
		list = slices.Delete(list, 0, 1)
	}
	p.of[one.account] = append(list, one.from)
	p.last[one] = now
}

// forgetAccount forgets the account that was right longest ago. It looks at all of them, which are few.
func (p *places) forgetAccount() {
	var oldest string
	var first time.Time
	for account, list := range p.of {
		if last := p.last[try{account, list[len(list)-1]}]; oldest == "" || last.Before(first) {
			oldest, first = account, last
		}
	}
	for _, from := range p.of[oldest] {
		delete(p.last, try{oldest, from})
	}
	delete(p.of, oldest)
}
