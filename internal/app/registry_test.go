package app_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/sluicehq/sluice/internal/testnode"
	"github.com/sluicehq/sluice/internal/testpg"
	"github.com/sluicehq/sluice/internal/testredis"
)

const withPepper = "[control]\npepper = \"a-pepper-of-at-least-32-characters\"\n"

func TestRegistry_ARuleWrittenByAScopedTokenActs(t *testing.T) {
	t.Parallel()
	redis := testredis.Single(t, testredis.Options{})
	n := testnode.Start(t, testnode.Options{Config: onRedis(redis.Addr()) + withPepper, Database: testpg.New(t).URL()})
	made := admin(t, n, http.MethodPost, "/v1/tokens", `{"name":"ci","grants":[{"namespace":"default","role":"admin"}]}`)
	var token struct{ Secret string }
	if err := json.Unmarshal([]byte(made.body), &token); err != nil || made.status != http.StatusCreated {
		t.Fatalf("%d %s", made.status, made.body)
	}
	put := func(path, body string) answer {
		return mustRequest(t, http.MethodPut, "http://"+n.Admin+path, body, "Authorization", "Bearer "+token.Secret)
	}
	if a := put("/v1/namespaces/default/rules/users", `{"key":["user"],"limits":[{"limit":1,"window":"1h"}]}`); a.status != http.StatusCreated {
		t.Fatalf("%d %s", a.status, a.body)
	}
	if a := put("/v1/tiers/pro", `{}`); a.status != http.StatusForbidden {
		t.Errorf("a tier, with a grant for one namespace: %d %s", a.status, a.body)
	}
	user := 0
	eventually(t, patience, "the rule acts", func() error {
		user++
		if got := admitted(t, n, fmt.Sprint("u_", user), 2); got != 1 {
			return fmt.Errorf("%d of 2 pass", got)
		}
		return nil
	})
	if a := admin(t, n, http.MethodPut, "/v1/blocks/user/u_blocked", `{"reason":"abuse"}`); a.status != http.StatusOK {
		t.Fatalf("%d %s", a.status, a.body)
	}
	eventually(t, patience, "the block acts", func() error {
		if d, _ := check(t, n, "u_blocked"); d.Cause != "blocked_by_list" {
			return fmt.Errorf("%+v", d)
		}
		return nil
	})
	eventually(t, patience, "the node is heard of", func() error {
		a := admin(t, n, http.MethodGet, "/v1/nodes", "")
		var nodes struct{ Items []struct{ SeenAt time.Time } }
		if err := json.Unmarshal([]byte(a.body), &nodes); err != nil || len(nodes.Items) != 1 {
			return fmt.Errorf("%s", a.body)
		}
		return nil
	})
}
