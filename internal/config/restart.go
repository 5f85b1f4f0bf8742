package config

import (
	"reflect"
	"slices"
	"strings"
)

// live are the fields and tables that act when the configuration is loaded again. What is missing here is built into
// listeners and connections, which a running node keeps.
var live = []string{
	"enabled", "admin.token", "log.level", "rules", "identity", "answers", "gateway.upstream", "gateway.route",
	"rule", "tier", "override", "exemption", "block",
}

// Live tells whether a change of a field acts without a restart.
func Live(field string) bool {
	return slices.ContainsFunc(live, func(l string) bool {
		return field == l || strings.HasPrefix(field, l+".")
	})
}

// RestartNeeded lists the fields that differ and do not act before a restart, in the order of the structs.
func RestartNeeded(before, after *Config) []string {
	var changed []string
	was := map[string]any{}
	visit(reflect.ValueOf(before).Elem(), "", "", func(f leaf) { was[f.path] = f.value.Interface() })
	visit(reflect.ValueOf(after).Elem(), "", "", func(f leaf) {
		if !Live(f.name) && !reflect.DeepEqual(was[f.path], f.value.Interface()) {
			changed = append(changed, f.name)
		}
	})
	return changed
}
