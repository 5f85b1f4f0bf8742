package ruletest

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/internal/directory"
	"github.com/sluicehq/sluice/internal/ruledoc"
	"github.com/sluicehq/sluice/memstore"
)

// Difference is a line of a trace that came out otherwise than it says.
type Difference struct {
	File string `json:"file"`
	Line int    `json:"line"`
	// Text is the line.
	Text string `json:"text"`
	// Want and Got are the expectation, and the decision in the same words.
	Want string `json:"want"`
	Got  string `json:"got"`
	// Reason is the decision in a sentence.
	Reason string `json:"reason,omitempty"`
}

// String tells it to people, in a few lines.
func (d Difference) String() string {
	text := fmt.Sprintf("%s:%d: %s\n  want %s\n  got  %s", d.File, d.Line, d.Text, d.Want, d.Got)
	if d.Reason != "" {
		text += "\n  " + d.Reason
	}
	return text
}

// Rules are what a trace is run against.
type Rules struct {
	set *sluice.RuleSet
	doc ruledoc.Document
}

// NewRules puts texts together and compiles them as a node would. It reports every fault. Where one is no warning the rules must not be
// used: a node would start without the faulty ones, which nobody wants to test.
func NewRules(parts ...*ruledoc.Parsed) (Rules, []ruledoc.Fault) {
	merged, faults := ruledoc.Merge(parts...)
	set, _, found := merged.Compile(nil)
	return Rules{set, merged.Document}, append(faults, found...)
}

// Run plays the trace from its start, on empty counters, and returns where it differs. An error tells that a request was refused as
// invalid, or that ctx ended.
func (t *Trace) Run(ctx context.Context, rules Rules) ([]Difference, error) {
	p := newPlayer(t.start, rules)
	var differences []Difference
	for i := range t.steps {
		s := &t.steps[i]
		p.now = t.start.Add(s.at)
		d, err := p.play(ctx, s)
		if err != nil {
			return differences, fmt.Errorf("%s:%d: %s: %w", t.Name, s.line, s.text, err)
		}
		if d != nil {
			d.File, d.Line, d.Text = t.Name, s.line, s.text
			differences = append(differences, *d)
		}
	}
	return differences, nil
}

// player is a node in a test tube.
type player struct {
	now       time.Time
	limiter   *sluice.Limiter
	directory *directory.Directory
}

func newPlayer(start time.Time, rules Rules) *player {
	p := &player{now: start}
	clock := func() time.Time { return p.now }
	p.directory = directory.New(clock)
	people, _ := directory.Build(rules.doc, start) // faulty entries are in no document
	p.directory.Set(people)
	p.limiter = sluice.New(memstore.New(memstore.Options{Now: clock}), rules.set, sluice.Options{Timeout: -1, Now: clock})
	return p
}

// play does what a step says, and compares. It returns nil when all is as expected.
func (p *player) play(ctx context.Context, s *step) (*Difference, error) {
	if s.times > 0 {
		return p.repeat(ctx, s)
	}
	d, err := p.do(ctx, s)
	if err != nil || s.expect.verdict == "" {
		return nil, err
	}
	o := outcome{&d}
	want, got := []string{s.expect.verdict}, []string{o.verdict()}
	same := got[0] == want[0]
	for _, f := range s.expect.fields {
		value := o.value(f.name)
		want, got = append(want, f.name+"="+f.value), append(got, f.name+"="+value)
		same = same && equal(f, value)
	}
	if same {
		return nil, nil
	}
	if len(got) == 1 {
		got = append(got, o.details()...)
	}
	return &Difference{Want: strings.Join(want, " "), Got: strings.Join(got, " "), Reason: d.Reason()}, nil
}

func (p *player) repeat(ctx context.Context, s *step) (*Difference, error) {
	admitted := 0
	var last sluice.Decision
	for range s.times {
		d, err := p.do(ctx, s)
		if err != nil {
			return nil, err
		}
		if last = d; d.Allowed {
			admitted++
		}
	}
	if s.expect.verdict == "" || admitted == s.expect.admitted {
		return nil, nil
	}
	return &Difference{
		Want: "admitted=" + strconv.Itoa(s.expect.admitted), Got: "admitted=" + strconv.Itoa(admitted), Reason: "the last: " + last.Reason(),
	}, nil
}

// do does it once. Refunds and resets decide nothing.
func (p *player) do(ctx context.Context, s *step) (d sluice.Decision, err error) {
	req := s.req
	p.directory.Fill(req.Namespace, &req.Subject)
	switch s.verb {
	case peek:
		return p.limiter.Peek(ctx, req)
	case refund:
		return d, p.limiter.Credit(ctx, req)
	case reset:
		return d, p.limiter.Reset(ctx, req)
	default:
		return p.limiter.Check(ctx, req)
	}
}
