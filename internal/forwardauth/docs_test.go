package forwardauth_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

func TestDocs_ShowTheRecipesAsTheyAre(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/forward-auth.md")
	if err != nil {
		t.Fatal(err)
	}
	for file, language := range map[string]string{"nginx/sluice.conf": "nginx", "caddy/Caddyfile": "caddyfile", "traefik/dynamic.yaml": "yaml"} {
		text, err := os.ReadFile(filepath.Join(deploy, filepath.FromSlash(file)))
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(page), "```"+language+"\n"+string(text)+"```\n") {
			t.Errorf("docs/forward-auth.md does not show deploy/%s as it is", file)
		}
	}
}

func TestRecipes_TraefiksIsYAML(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(filepath.Join(deploy, "traefik", "dynamic.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var recipe struct {
		HTTP struct {
			Routers     map[string]struct{ Middlewares []string }
			Middlewares map[string]struct {
				ForwardAuth struct {
					Address             string
					TrustForwardHeader  bool  `yaml:"trustForwardHeader"`
					MaxResponseBodySize int64 `yaml:"maxResponseBodySize"`
				} `yaml:"forwardAuth"`
			}
		}
	}
	if err := yaml.Unmarshal(text, &recipe); err != nil {
		t.Fatal(err)
	}
	auth := recipe.HTTP.Middlewares["sluice"].ForwardAuth
	if !strings.HasSuffix(auth.Address, "/v1/forward-auth") || auth.TrustForwardHeader || auth.MaxResponseBodySize < 4096 {
		t.Errorf("forwardAuth: %+v", auth)
	}
	if m := recipe.HTTP.Routers["app"].Middlewares; len(m) != 1 || m[0] != "sluice" {
		t.Errorf("middlewares of the router: %q", m)
	}
}
