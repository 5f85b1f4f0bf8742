package app_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/sluicehq/sluice/internal/testnode"
)

func TestAdmin_AsksForTheTokenAndIsShutWithoutOne(t *testing.T) {
	t.Parallel()
	node := testnode.Start(t, testnode.Options{Config: inMemory, Rules: usersRule})
	shut := testnode.Start(t, testnode.Options{Config: inMemory, Rules: usersRule, NoToken: true})
	for _, c := range []struct {
		name   string
		node   *testnode.Node
		header string
		want   int
	}{
		{"with the token", node, "Bearer " + testnode.AdminToken, http.StatusOK},
		{"without a token", node, "", http.StatusUnauthorized},
		{"with a wrong token", node, "Bearer wrong", http.StatusUnauthorized},
		{"where none is configured", shut, "Bearer " + testnode.AdminToken, http.StatusForbidden},
		{"where none is configured, with an empty one", shut, "Bearer ", http.StatusForbidden},
	} {
		a := mustRequest(t, http.MethodGet, "http://"+c.node.Admin+"/v1/status", "", "Authorization", c.header)
		if a.status != c.want {
			t.Errorf("%s: got %d %s, want %d", c.name, a.status, a.body, c.want)
		}
	}
	if a := mustRequest(t, http.MethodGet, "http://"+node.HTTP+"/v1/status", "", "Authorization", "Bearer "+testnode.AdminToken); a.status == http.StatusOK {
		t.Error("the data listener tells the status, too")
	}
}

func TestAdmin_TheTokenIsReplacedByAReload(t *testing.T) {
	t.Parallel()
	config := func(token string) string { return inMemory + fmt.Sprintf("[admin]\ntoken = %q\n", token) }
	node := testnode.Start(t, testnode.Options{Config: config("the-first-token-of-two"), Rules: usersRule, NoToken: true})
	node.WriteConfig(config("the-second-token-of-two"))
	wantReload(t, node, "configuration reloaded", 1)
	for token, want := range map[string]int{"the-first-token-of-two": http.StatusUnauthorized, "the-second-token-of-two": http.StatusOK} {
		a := mustRequest(t, http.MethodGet, "http://"+node.Admin+"/v1/status", "", "Authorization", "Bearer "+token)
		if a.status != want || strings.Contains(a.body, "restart_needed") {
			t.Errorf("%s: got %d %s, want %d and no restart", token, a.status, a.body, want)
		}
	}
}
