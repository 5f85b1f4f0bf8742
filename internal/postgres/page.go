package postgres

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/sluicehq/sluice/internal/registry"
)

const (
	defaultPage = 100
	maxPage     = 1000
	// maxCursor is more than the longest: two names of 255 characters of 4 bytes, in JSON and base64.
	maxCursor = 16 << 10
)

// limitOf returns how many entries a page has.
func limitOf(p registry.Page) int {
	if p.Limit <= 0 {
		return defaultPage
	}
	return min(p.Limit, maxPage)
}

// parseCursor returns the parts of the last entry's key, as many as there are in first; these where the page is the first.
func parseCursor(text string, first ...string) ([]string, error) {
	if text == "" {
		return first, nil
	}
	var parts []string
	data, err := base64.RawURLEncoding.DecodeString(text)
	if err == nil && len(text) <= maxCursor {
		err = json.Unmarshal(data, &parts)
	}
	if err != nil || len(parts) != len(first) {
		return nil, fmt.Errorf("%w: cursor: pass on what the page before told as next, unchanged", registry.ErrInvalid)
	}
	return parts, nil
}

func cursorOf(parts []string) string {
	text, _ := json.Marshal(parts) // strings always can be
	return base64.RawURLEncoding.EncodeToString(text)
}

// list returns a page. It asks for one entry more than it shows, to know whether there is a next page; key is what the statement orders by.
func list[T any](
	ctx context.Context, s *Scoped, p registry.Page, scan pgx.RowToFunc[T], key func(T) []string, sql string, args ...any,
) (registry.Listed[T], error) {
	limit := limitOf(p)
	items, err := query(ctx, s.db, s.grant, scan, sql, append(args, limit+1)...)
	if err != nil {
		return registry.Listed[T]{}, err
	}
	listed := registry.Listed[T]{Items: items}
	if len(items) > limit {
		listed.Items = items[:limit]
		listed.Next = cursorOf(key(items[limit-1]))
	}
	return listed, nil
}
