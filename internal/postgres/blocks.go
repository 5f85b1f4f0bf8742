package postgres

import (
	"context"
	_ "embed"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/sluicehq/sluice/internal/registry"
)

var (
	//go:embed queries/blocks.sql
	blocksSQL string
	//go:embed queries/block.sql
	blockSQL string
	//go:embed queries/put_block.sql
	putBlock string
	//go:embed queries/delete_block.sql
	deleteBlock string
)

func blockAt(who registry.Who) place[registry.Block] {
	return place[registry.Block]{
		kind: registry.KindBlock, name: nameOf(who), who: who, get: blockSQL, key: []any{who.Dimension, who.ID}, scan: scanBlock,
	}
}

func scanBlock(row pgx.CollectableRow) (registry.Entry[registry.Block], error) {
	var (
		e     registry.Entry[registry.Block]
		b     = &e.Body
		until *time.Time
	)
	err := row.Scan(&b.Who.Dimension, &b.Who.ID, &e.Version, &e.UpdatedAt, &e.UpdatedBy, &b.Reason, &b.Author, &until)
	e.Name, e.UpdatedAt, b.Until = nameOf(b.Who), e.UpdatedAt.UTC(), orZero(until)
	return e, err
}

// Blocks returns the blocks, by dimension and id, those that have ended too.
func (s *Scoped) Blocks(ctx context.Context, p registry.Page) (registry.Listed[registry.Entry[registry.Block]], error) {
	after, err := parseCursor(p.After, "", "")
	if err != nil {
		return registry.Listed[registry.Entry[registry.Block]]{}, err
	}
	key := func(e registry.Entry[registry.Block]) []string { return []string{e.Body.Who.Dimension, e.Body.Who.ID} }
	listed, err := list(ctx, s, p, scanBlock, key, blocksSQL, after[0], after[1])
	return listed, fault("list blocks", err)
}

// Block returns the block of a subject.
func (s *Scoped) Block(ctx context.Context, who registry.Who) (registry.Entry[registry.Block], error) {
	return blockAt(who).read(ctx, s)
}

// PutBlock blocks a subject. Without an author it is the actor.
func (s *Scoped) PutBlock(ctx context.Context, b registry.Block, e registry.Edit) (registry.Entry[registry.Block], error) {
	return blockAt(b.Who).put(ctx, s, e, putBlock, b.Who.Dimension, b.Who.ID, b.Reason, b.Author, timeOrNull(b.Until))
}

// DeleteBlock lifts a block.
func (s *Scoped) DeleteBlock(ctx context.Context, who registry.Who, e registry.Edit) error {
	return blockAt(who).remove(ctx, s, e, deleteBlock)
}
