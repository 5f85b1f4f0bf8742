package memstore_test

import (
	"testing"
	"time"

	"github.com/sluicehq/sluice/memstore"
	"github.com/sluicehq/sluice/storetest"
)

func TestStore(t *testing.T) {
	t.Parallel()
	var now time.Time
	storetest.Run(t, func(*testing.T) storetest.Fixture {
		return storetest.Fixture{
			Store:   memstore.New(memstore.Options{Now: func() time.Time { return now }}),
			SetTime: func(t time.Time) { now = t },
		}
	})
}
