package rulefeed

import (
	"bytes"
	"context"
	"slices"
)

// Joined is a Source of several, in their order: of two rules with the same name the first stays. The revision is that of the last.
//
// One that cannot be read, or has a text that cannot be understood, does not hold the others up: it goes on with all texts that it had when
// it was good last, and the feed tells why. As long as one was never good there is nothing to go on with, and the whole fails as that one
// does.
//
// Snapshot and Wait are for one goroutine, as a Feed calls them.
type Joined struct {
	parts []*part
}

// NewJoined returns a source of several. It reads nothing yet.
func NewJoined(sources ...Source) *Joined {
	j := new(Joined)
	for _, s := range sources {
		j.parts = append(j.parts, &part{source: s})
	}
	return j
}

// Snapshot implements Source.
func (j *Joined) Snapshot(ctx context.Context) (Snapshot, error) {
	var all Snapshot
	for _, p := range j.parts {
		s, err := p.snapshot(ctx)
		if err != nil {
			return Snapshot{}, err
		}
		all.Revision, all.Texts, all.refused = s.Revision, append(all.Texts, s.Texts...), append(all.refused, s.refused...)
	}
	return all, nil
}

// Wait implements Source. It returns when one of them does.
func (j *Joined) Wait(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	ended := make(chan error, len(j.parts))
	for _, p := range j.parts {
		go func() { ended <- p.wait(ctx) }()
	}
	err := <-ended
	cancel()
	for range len(j.parts) - 1 { // nobody stays behind
		<-ended
	}
	return err
}

// part is one of the sources, and what it had when it was good last.
type part struct {
	source Source
	good   *Snapshot // nil: it never was
	unread bool      // it could not be read when it was looked at last
}

// snapshot is what the source has, or had when that was good last. It fails only where there is no such thing.
func (p *part) snapshot(ctx context.Context) (Snapshot, error) {
	now, err := p.source.Snapshot(ctx)
	p.unread = err != nil
	var why *refusal
	if err != nil {
		why = &refusal{err: err, digest: err.Error()}
	} else if why = p.judge(now); why == nil {
		p.good = &now
		return now, nil
	}
	if p.good == nil || ctx.Err() != nil {
		return now, err // without an error, the feed finds the broken texts itself
	}
	former := Snapshot{Revision: p.good.Revision, Texts: slices.Clone(p.good.Texts), refused: []refusal{*why}}
	for i := range former.Texts {
		former.Texts[i].former = true
	}
	return former, nil
}

// judge is nil when every text can be understood. Where none was written since, or all were read elsewhere, it need not read them: that
// is so nearly always, when it is another source that changed.
func (p *part) judge(now Snapshot) *refusal {
	isRecord := func(t Text) bool { return t.Document != nil }
	isSame := func(a, b Text) bool {
		return isRecord(a) && isRecord(b) ||
			!isRecord(a) && !isRecord(b) && a.Name == b.Name && a.Format == b.Format && a.Embedded == b.Embedded && bytes.Equal(a.Data, b.Data)
	}
	if p.good != nil && slices.EqualFunc(p.good.Texts, now.Texts, isSame) {
		return nil
	}
	r := now.read()
	if r.broken == 0 {
		return nil
	}
	why := r.refusal()
	return &why
}

// wait is the source's Wait. One that could not be read is looked at again after a while: it would return at once, since what it has is
// not what was read last, and when the trouble ends nothing need have changed.
func (p *part) wait(ctx context.Context) error {
	if p.unread {
		return sleep(ctx, retryWait)
	}
	return p.source.Wait(ctx)
}
