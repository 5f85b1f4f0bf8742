package rulefeed

import (
	"context"
	"slices"
)

// Joined is a Source of several, in their order: of two rules with the same name the first stays. The revision is that of the last.
type Joined []Source

// Snapshot implements Source. It fails where one of them does.
func (j Joined) Snapshot(ctx context.Context) (Snapshot, error) {
	var all Snapshot
	for _, source := range j {
		s, err := source.Snapshot(ctx)
		if err != nil {
			return Snapshot{}, err
		}
		all = Snapshot{Revision: s.Revision, Texts: slices.Concat(all.Texts, s.Texts)}
	}
	return all, nil
}

// Wait implements Source. It returns when one of them does.
func (j Joined) Wait(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	ended := make(chan error, len(j))
	for _, source := range j {
		go func() { ended <- source.Wait(ctx) }()
	}
	err := <-ended
	cancel()
	for range len(j) - 1 { // nobody stays behind
		<-ended
	}
	return err
}
