package main

import (
	"strings"
	"testing"

	"github.com/sluicehq/sluice/internal/testnode"
	"github.com/sluicehq/sluice/internal/testredis"
)

func TestUsage_MistakesExitWith2AndPointAtHelp(t *testing.T) {
	t.Parallel()
	for args, want := range map[string]string{
		"chek":                          "did you mean check",
		"--unknown":                     "sluice --help",
		"check --unknown user=a":        "sluice check --help",
		"check":                         "name who asks",
		"check user":                    "not name=value",
		"check user=a --output xml":     "want text or json",
		"check user=a --server ::":      "no address",
		"serve extra":                   "sluice serve --help",
		"config nonsense":               "sluice config --help",
		"config print --output xml":     "want toml or json",
		"doctor -o xml":                 "want text or json",
		"import envoy-ratelimit":        "name the files",
		"completion tcsh":               "sluice completion --help",
		"reset user=a user=b":           "twice",
		"tail extra":                    "sluice tail --help",
		"version --config x":            "unknown flag",
		"explain user=a --output=":      "want text or json",
		"import nonsense --help=banana": "invalid argument",
	} {
		out := testnode.Run(t, nil, strings.Fields(args)...)
		if out.Code != exitUsage || !strings.Contains(out.Stderr, want) || out.Stdout != "" {
			t.Errorf("sluice %s: got exit code %d, want 2 and %q:\n%s%s", args, out.Code, want, out.Stdout, out.Stderr)
		}
	}
}

func TestErrors_ExitWith1AndSayWhatToDo(t *testing.T) {
	t.Parallel()
	for args, want := range map[string]string{
		"check user=a --server http://127.0.0.1:1":                           "is a node running there?",
		"status --admin http://127.0.0.1:1":                                  "is a node running there?",
		"check user=a --ca-file /nonexistent":                                "--ca-file",
		"check user=a --cert-file /nonexistent":                              "--cert-file",
		"serve --config /nonexistent":                                        "/nonexistent",
		"serve --set nonsense=1":                                             "nonsense",
		"config check --set http.listen=8080":                                "did you mean",
		"import envoy-ratelimit /nonexistent.yaml":                           "/nonexistent.yaml",
		"serve --set redis.url=memory --set http.tls.cert_file=/nonexistent": "http.tls",
	} {
		out := testnode.Run(t, nil, strings.Fields(args)...)
		if out.Code != exitError || !strings.Contains(out.Stderr, want) || out.Stdout != "" {
			t.Errorf("sluice %s: got exit code %d, want 1 and %q:\n%s%s", args, out.Code, want, out.Stdout, out.Stderr)
		}
	}
}

func TestHelp_IsASuccess(t *testing.T) {
	t.Parallel()
	for _, args := range []string{"", "--help", "help", "help check", "config", "import", "check -h", "version"} {
		if out := testnode.Run(t, nil, strings.Fields(args)...); out.Code != 0 || !strings.Contains(out.Stdout, "sluice") || out.Stderr != "" {
			t.Errorf("sluice %s: got exit code %d, want 0 and help:\n%s%s", args, out.Code, out.Stdout, out.Stderr)
		}
	}
}

func TestDoctor_FindsNoFaultInAGoodRedis(t *testing.T) {
	t.Parallel()
	redis := testredis.Single(t, testredis.Options{Config: []string{"--maxmemory", "64mb", "--maxmemory-policy", "noeviction"}})
	at := "SLUICE_REDIS__URL=redis://" + redis.Addr()
	run(t, []string{at}, 0, "ok", "doctor")
	run(t, []string{at}, 0, `"grade": "fine"`, "doctor", "--output", "json")
}

func TestDoctor_TellsFaultsAndTheirCureAndExitsWith1(t *testing.T) {
	t.Parallel()
	gone := testredis.Single(t, testredis.Options{})
	gone.Kill()
	evicting := testredis.Single(t, testredis.Options{Config: []string{"--maxmemory", "64mb", "--maxmemory-policy", "allkeys-lru"}})
	for name, c := range map[string]struct{ addr, want string }{
		"gone": {gone.Addr(), "start Redis"}, "evicting": {evicting.Addr(), "noeviction"},
	} {
		out := testnode.Run(t, []string{"SLUICE_REDIS__URL=redis://" + c.addr}, "doctor")
		if out.Code != exitError || !strings.Contains(out.Stdout, "FAULT") || !strings.Contains(out.Stdout, c.want) {
			t.Errorf("%s: got exit code %d, want 1 and the cure %q:\n%s%s", name, out.Code, c.want, out.Stdout, out.Stderr)
		}
	}
}

func TestClient_ReachesANodeThatAsksForCertificates(t *testing.T) {
	t.Parallel()
	ca := testnode.NewAuthority(t)
	server, client := ca.Issue(1), ca.Issue(2)
	args := []string{}
	for _, door := range []string{"http", "admin"} {
		args = append(args, "--set", door+".tls.cert_file="+server.Cert, "--set", door+".tls.key_file="+server.Key, "--set", door+".tls.client_ca_file="+ca.File)
	}
	node := testnode.Start(t, testnode.Options{Config: "redis.url = \"memory\"", Rules: nodeRules, Args: args})
	env := []string{"SLUICE_SERVER=https://" + node.HTTP, "SLUICE_ADMIN=https://" + node.Admin, "SLUICE_ADMIN__TOKEN=" + testnode.AdminToken}
	with := []string{"--ca-file", ca.File, "--cert-file", client.Cert, "--key-file", client.Key}
	run(t, env, 0, "allowed", append([]string{"check", "user=a"}, with...)...)
	run(t, env, 0, "ready", append([]string{"status"}, with...)...)
	run(t, env, exitError, "certificate", "check", "user=a")
	run(t, env, exitError, "--cert-file", "check", "user=a", "--ca-file", ca.File)
}
