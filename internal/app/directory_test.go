package app_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/sluicehq/sluice/internal/apikey"
	"github.com/sluicehq/sluice/internal/registry"
	"github.com/sluicehq/sluice/internal/testnode"
	"github.com/sluicehq/sluice/internal/testpg"
	"github.com/sluicehq/sluice/internal/testredis"
)

func TestDatabase_KeysAndBlocksActAtTheDoors(t *testing.T) {
	t.Parallel()
	const pepper = "a pepper of at least thirty-two characters"
	redis, pg := testredis.Single(t, testredis.Options{}), testpg.New(t)
	db := operator(t, pg.URL())
	text, id, hash := apikey.New(pepper)
	if _, err := db.CreateKey(t.Context(), registry.Key{ID: id, Owner: "ann", Hashes: [][]byte{hash}}, registry.Edit{Reason: "a test"}); err != nil {
		t.Fatal(err)
	}
	n := testnode.Start(t, testnode.Options{
		Config:   onRedis(redis.Addr()) + fmt.Sprintf("\n[control]\npepper = %q\n[identity]\ntrusted_proxies = [\"127.0.0.1/32\"]\n", pepper),
		Rules:    "[[rule]]\nname = \"keys\"\nkey = [\"api_key\"]\nlimits = [{ limit = 1000000, window = \"1h\" }]\n",
		Database: pg.URL(),
	})
	ask := func(key string) (limited bool, status int) {
		a := mustRequest(t, "GET", "http://"+n.HTTP+"/v1/forward-auth", "", "X-Forwarded-Method", "GET", "X-Forwarded-Uri", "/",
			"X-Forwarded-For", "203.0.113.7", "X-API-Key", key)
		return a.header.Get("X-RateLimit-Limit") != "", a.status
	}
	forged, _, _ := apikey.New(pepper + "!")
	eventually(t, 5*time.Second, "a valid key is taken", func() error { // at once, but for a machine too busy to ask in time
		if limited, status := ask(text); !limited || status != 200 {
			return fmt.Errorf("limited %v, status %d", limited, status)
		}
		return nil
	})
	if limited, _ := ask(forged); limited {
		t.Error("a forged key was taken")
	}
	owner := registry.Who{Dimension: "user", ID: "ann"}
	if _, err := db.PutBlock(t.Context(), registry.Block{Who: owner, Reason: "abuse"}, registry.Edit{Reason: "a test"}); err != nil {
		t.Fatal(err)
	}
	eventually(t, 5*time.Second, "the block of the key's owner acts", func() error {
		if _, status := ask(text); status == 200 {
			return errors.New("allowed")
		}
		return nil
	})
	if _, err := db.RevokeKey(t.Context(), id, registry.Edit{Reason: "a test"}); err != nil {
		t.Fatal(err)
	}
	eventually(t, 5*time.Second, "the revocation acts", func() error {
		if limited, status := ask(text); limited || status != 200 { // it is nobody's now, and so not blocked
			return fmt.Errorf("limited %v, status %d", limited, status)
		}
		return nil
	})
}
