package envoyrls_test

import (
	"encoding/json"
	"os"
	"regexp"
	"strings"
	"testing"

	bootstrap "github.com/envoyproxy/go-control-plane/envoy/config/bootstrap/v3"
	_ "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/ratelimit/v3" // for its type in the bootstrap
	_ "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/router/v3"
	_ "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	_ "github.com/envoyproxy/go-control-plane/envoy/extensions/upstreams/http/v3"
	"go.yaml.in/yaml/v3"
	"google.golang.org/protobuf/encoding/protojson"

	"github.com/sluicehq/sluice/internal/ruledoc"
)

// page returns the blocks of the page about Envoy that are written in a language.
func page(t *testing.T, language string) []string {
	t.Helper()
	text, err := os.ReadFile("../../docs/envoy.md")
	if err != nil {
		t.Fatal(err)
	}
	var blocks []string
	for _, m := range regexp.MustCompile("(?s)```"+language+"\n(.*?)```").FindAllStringSubmatch(string(text), -1) {
		blocks = append(blocks, m[1])
	}
	return blocks
}

func TestDocs_EnvoyConfigurationFitsEnvoysAPI(t *testing.T) {
	t.Parallel()
	checked := 0
	for _, block := range page(t, "yaml") {
		if !strings.Contains(block, "static_resources") {
			continue
		}
		var tree any
		if err := yaml.Unmarshal([]byte(block), &tree); err != nil {
			t.Fatal(err)
		}
		text, err := json.Marshal(tree)
		if err != nil {
			t.Fatal(err)
		}
		var b bootstrap.Bootstrap
		if err := protojson.Unmarshal(text, &b); err != nil {
			t.Fatalf("%v in\n%s", err, block)
		}
		if err := b.ValidateAll(); err != nil {
			t.Error(err)
		}
		checked++
	}
	if checked != 1 {
		t.Errorf("%d configurations of Envoy on the page, want one", checked)
	}
}

func TestDocs_RulesLoad(t *testing.T) {
	t.Parallel()
	for _, block := range page(t, "toml") {
		if _, faults := ruledoc.Decode("envoy.md", ruledoc.TOML, []byte(block)); len(faults) > 0 {
			t.Errorf("%v in\n%s", faults[0], block)
		}
	}
}
