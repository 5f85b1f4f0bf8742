package adminhttp

import (
	"encoding/json"
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/sluicehq/sluice/internal/registry"
)

// trial tells what a change would do that was not made.
type trial struct {
	DryRun bool `json:"dry_run"`
	// Before and After are entries; null where there is none.
	Before any          `json:"before"`
	After  any          `json:"after"`
	Diff   []difference `json:"diff"`
	// Verdicts are told for rules.
	Verdicts *verdicts `json:"verdicts,omitempty"`
}

func writeTrial[T any](w http.ResponseWriter, before, after *registry.Entry[T], v *verdicts) {
	t := trial{DryRun: true, Verdicts: v}
	var from, to json.RawMessage
	if before != nil {
		t.Before, from = before, marshal(before.Body)
	}
	if after != nil {
		t.After, to = after, marshal(after.Body)
	}
	t.Diff = diff(from, to)
	writeJSON(w, t)
}

func marshal(value any) json.RawMessage {
	text, err := json.Marshal(value)
	if err != nil {
		panic("adminhttp: " + err.Error()) // our own types always marshal
	}
	return text
}

// difference is one value that changed. Before or after is absent where the value is.
type difference struct {
	Pointer string          `json:"pointer"`
	Before  json.RawMessage `json:"before,omitempty"`
	After   json.RawMessage `json:"after,omitempty"`
}

// diff lists what differs between two JSON texts, either of which may be empty for nothing. Lists are compared place by place.
func diff(before, after json.RawMessage) []difference {
	list := []difference{}
	var a, b any = absent{}, absent{}
	if len(before) > 0 && json.Unmarshal(before, &a) != nil || len(after) > 0 && json.Unmarshal(after, &b) != nil {
		return list
	}
	compare("", a, b, &list)
	return list
}

// absent stands for a value that is not there.
type absent struct{}

func compare(pointer string, a, b any, list *[]difference) {
	if reflect.DeepEqual(a, b) {
		return
	}
	x, isObject := a.(map[string]any)
	y, isAlso := b.(map[string]any)
	if isObject && isAlso {
		compareObjects(pointer, x, y, list)
		return
	}
	m, isList := a.([]any)
	n, isAlso := b.([]any)
	if isList && isAlso {
		for i := range max(len(m), len(n)) {
			compare(pointer+"/"+strconv.Itoa(i), at(m, i), at(n, i), list)
		}
		return
	}
	*list = append(*list, difference{pointer, shownValue(a), shownValue(b)})
}

func compareObjects(pointer string, a, b map[string]any, list *[]difference) {
	names := make([]string, 0, len(a)+len(b))
	for name := range a {
		names = append(names, name)
	}
	for name := range b {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		compare(pointer+"/"+escapePointer(name), field(a, name), field(b, name), list)
	}
}

// escapePointer is as in RFC 6901.
func escapePointer(name string) string {
	return strings.NewReplacer("~", "~0", "/", "~1").Replace(name)
}

func at(list []any, i int) any {
	if i < len(list) {
		return list[i]
	}
	return absent{}
}

func field(object map[string]any, name string) any {
	if value, there := object[name]; there {
		return value
	}
	return absent{}
}

func shownValue(value any) json.RawMessage {
	if _, isAbsent := value.(absent); isAbsent {
		return nil
	}
	return marshal(value)
}
