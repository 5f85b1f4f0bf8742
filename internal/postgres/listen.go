package postgres

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/sluicehq/sluice/internal/registry"
)

// probeEvery is how long a silent connection is trusted. A connection that was cut without a word (a firewall, a machine switched off) looks
// like one on which nothing happens; a longer time finds out later, a shorter one asks the database more often.
const probeEvery = 5 * time.Second

// Listen calls fn for every change, on a connection of its own, until the context ends or the connection is lost; the caller then listens
// again. Changes made while nobody listened are not told of, so when it begins to listen it calls fn once with a zero Notice: look at the
// revision. So it does where it got something it does not understand. Fn holds up what comes after it.
func (db *DB) Listen(ctx context.Context, fn func(registry.Notice)) error {
	conn, err := pgx.ConnectConfig(ctx, db.listen.Copy())
	if err != nil {
		return fault("listen", err)
	}
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer cancel()
		_ = conn.Close(ctx)
	}()
	if err := db.within(ctx, conn, "LISTEN "+channel); err != nil {
		return fault("listen", err)
	}
	fn(registry.Notice{})
	for {
		payload, err := db.next(ctx, conn)
		switch {
		case err == nil:
			fn(parseNotice(payload))
		case ctx.Err() != nil:
			return ctx.Err()
		case !errors.Is(err, errSilence):
			return fault("listen", err)
		}
	}
}

// errSilence: nothing came, and the connection is alive.
var errSilence = errors.New("no notice")

// next returns the payload of the next notice.
func (db *DB) next(ctx context.Context, conn *pgx.Conn) (string, error) {
	wait, cancel := context.WithTimeout(ctx, probeEvery)
	defer cancel()
	n, err := conn.WaitForNotification(wait)
	if err == nil {
		return n.Payload, nil
	}
	if wait.Err() == nil || ctx.Err() != nil {
		return "", err
	}
	if err := db.within(ctx, conn, "SELECT 1"); err != nil {
		return "", fmt.Errorf("silent for %v: %w", probeEvery, err)
	}
	return "", errSilence
}

// within runs a statement with the time that calls have.
func (db *DB) within(ctx context.Context, conn *pgx.Conn, sql string) error {
	ctx, cancel := context.WithTimeout(ctx, db.timeout)
	defer cancel()
	_, err := conn.Exec(ctx, sql)
	return err
}

// parseNotice reads what came on the channel, on which anybody may send.
func parseNotice(payload string) registry.Notice {
	var n registry.Notice
	if err := json.Unmarshal([]byte(payload), &n); err != nil {
		return registry.Notice{}
	}
	return n
}
