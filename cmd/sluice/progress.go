package main

import (
	"fmt"
	"io"
	"time"

	"github.com/schollz/progressbar/v3"
)

// progress tells how far something long is: by a bar on a terminal, and otherwise by a line now and then, which logs can take.
type progress struct {
	w     io.Writer
	total int64
	bar   *progressbar.ProgressBar // nil: lines
	done  int64
	next  time.Time
}

// lineEvery is how often a line is written. More would fill logs.
const lineEvery = 10 * time.Second

// checkEvery is after how many steps the clock is looked at.
const checkEvery = 1000

func newProgress(w io.Writer, total int64) *progress {
	p := &progress{w: w, total: total, next: time.Now().Add(lineEvery)}
	if isTerminal(w) {
		p.bar = progressbar.NewOptions64(total,
			progressbar.OptionSetWriter(w), progressbar.OptionSetDescription("sending"), progressbar.OptionShowCount(), progressbar.OptionShowIts(),
			progressbar.OptionSetPredictTime(true), progressbar.OptionFullWidth(), progressbar.OptionThrottle(100*time.Millisecond),
			progressbar.OptionUseANSICodes(true))
	}
	return p
}

// add counts steps. It is for one goroutine.
func (p *progress) add(n int64) {
	p.done += n
	if p.done%checkEvery != 0 && p.done != p.total {
		return
	}
	if p.bar != nil {
		if p.done == p.total { // what is sent is not yet kept
			p.bar.Describe("sent, waiting until it is kept")
		}
		_ = p.bar.Set64(p.done)
		return
	}
	if now := time.Now(); now.After(p.next) {
		p.next = now.Add(lineEvery)
		_, _ = fmt.Fprintf(p.w, "sent %d of %d\n", p.done, p.total)
	}
}

// end leaves the terminal as it was.
func (p *progress) end(err error) {
	if p.bar == nil {
		return
	}
	if err != nil {
		_ = p.bar.Exit()
	}
	_, _ = fmt.Fprintln(p.w)
}
