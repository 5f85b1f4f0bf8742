package config

import (
	"reflect"
	"strings"
)

func isSecret(t reflect.Type) bool { return t == reflect.TypeFor[Secret]() }

// hasPassword tells that a value is a URL with credentials.
func hasPassword(value string) bool { return redactURL(value) != value }

// redactURL hides the credentials of a URL, also of one with several hosts or with characters that should have been
// encoded, which net/url would not take: everything from the scheme to the last @ is taken for credentials. The user's
// name stays. What else holds no credentials is returned as it is.
func redactURL(value string) string {
	scheme, rest, found := strings.Cut(value, "://")
	if !found {
		return value
	}
	if at := strings.LastIndexByte(rest, '@'); at >= 0 {
		user, _, named := strings.Cut(rest[:at], ":")
		if !named {
			// A lone name is often a token.
			user = redacted
		} else {
			user += ":" + redacted
		}
		rest = user + rest[at:]
	}
	if path, _, found := strings.Cut(rest, "?"); found {
		rest = path + "?" + redacted // keys of services are often sent as parameters
	}
	return scheme + "://" + rest
}

// shown is a value as it may be printed.
func shown(name string, v reflect.Value) reflect.Value {
	switch {
	case isSecret(v.Type()):
		return reflect.ValueOf(v.Interface().(Secret).String())
	case strings.HasSuffix(name, "url"):
		return reflect.ValueOf(redactURL(v.String()))
	case v.Kind() == reflect.Slice && v.IsNil(): // so that readers of JSON see an empty list, not null
		return reflect.MakeSlice(v.Type(), 0, 0)
	case v.Kind() == reflect.Map && v.IsNil():
		return reflect.MakeMap(v.Type())
	default:
		return v
	}
}
