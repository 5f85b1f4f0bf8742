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
	words progressWords
	total int64
	bar   *progressbar.ProgressBar // nil: lines
	done  int64
	next  time.Time
}

// progressWords tell what is being done, what was done, and what is waited for when all of it is.
type progressWords struct{ doing, done, waiting string }

var (
	sending  = progressWords{"sending", "sent", "sent, waiting until it is kept"}
	checking = progressWords{"checking revisions", "checked revision", "checking the last revision"}
)

// lineEvery is how often a line is written. More would fill logs.
const lineEvery = 10 * time.Second

// checkEvery is after how many steps the clock is looked at.
const checkEvery = 1000

func newProgress(w io.Writer, words progressWords, total int64) *progress {
	p := &progress{w: w, words: words, total: total, next: time.Now().Add(lineEvery)}
	if isTerminal(w) {
		p.bar = progressbar.NewOptions64(total,
			progressbar.OptionSetWriter(w), progressbar.OptionSetDescription(words.doing), progressbar.OptionShowCount(), progressbar.OptionShowIts(),
			progressbar.OptionSetPredictTime(true), progressbar.OptionFullWidth(), progressbar.OptionThrottle(100*time.Millisecond),
			progressbar.OptionUseANSICodes(true))
	}
	return p
}

// add counts steps. It is for one goroutine.
func (p *progress) add(n int64) {
	p.done += n
	if p.done%checkEvery == 0 || p.done == p.total {
		p.show()
	}
}

// reach tells how far it is, of how much: for what grows meanwhile.
func (p *progress) reach(done, total int64) {
	p.done = done
	if p.total != total && p.bar != nil {
		p.bar.ChangeMax64(total)
	}
	p.total = total
	p.show()
}

func (p *progress) show() {
	if p.bar != nil {
		if p.done == p.total { // what is sent is not yet kept
			p.bar.Describe(p.words.waiting)
		}
		_ = p.bar.Set64(p.done)
		return
	}
	if now := time.Now(); now.After(p.next) {
		p.next = now.Add(lineEvery)
		_, _ = fmt.Fprintf(p.w, "%s %d of %d\n", p.words.done, p.done, p.total)
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
