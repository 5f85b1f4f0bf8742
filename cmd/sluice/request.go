package main

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
)

// request is a question as the check API takes it.
type request struct {
	Namespace  string            `json:"namespace,omitempty"`
	Subject    subject           `json:"subject,omitzero"`
	Route      string            `json:"route,omitempty"`
	Method     string            `json:"method,omitempty"`
	Attributes map[string]string `json:"attributes,omitempty"`
	Cost       int64             `json:"cost,omitempty"`
}

// subject is who asks.
type subject struct {
	Tenant string `json:"tenant,omitempty"`
	User   string `json:"user,omitempty"`
	APIKey string `json:"api_key,omitempty"`
	IP     string `json:"ip,omitempty"`
	Tier   string `json:"tier,omitempty"`
}

// requestHelp explains the arguments that parseRequest reads.
const requestHelp = `The request is written as name=value: namespace, tenant, user, api_key, ip, tier, route, method, cost; any
other name is an attribute.`

// parseRequest reads arguments such as user=u_42 route=/api/search plan=trial.
func parseRequest(args []string) (request, error) {
	var r request
	if len(args) == 0 {
		return r, usageError{errNoArguments}
	}
	fields := map[string]*string{
		"namespace": &r.Namespace, "tenant": &r.Subject.Tenant, "user": &r.Subject.User, "api_key": &r.Subject.APIKey,
		"ip": &r.Subject.IP, "tier": &r.Subject.Tier, "route": &r.Route, "method": &r.Method,
	}
	seen := map[string]bool{}
	for _, arg := range args {
		name, value, found := strings.Cut(arg, "=")
		if !found || name == "" || value == "" {
			return r, usageError{fmt.Errorf("%q is not name=value", arg)}
		}
		if seen[name] {
			return r, usageError{fmt.Errorf("%s is there twice", name)}
		}
		seen[name] = true
		switch field := fields[name]; {
		case field != nil:
			*field = value
		case name == "cost":
			n, err := strconv.ParseInt(value, 10, 64)
			if err != nil || n < 1 {
				return r, usageError{fmt.Errorf("cost is %q: want a whole number from 1", value)}
			}
			r.Cost = n
		default:
			if r.Attributes == nil {
				r.Attributes = map[string]string{}
			}
			r.Attributes[name] = value
		}
	}
	return r, nil
}

// completeRequest offers the names of a request's fields to shells.
func completeRequest(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	var names []string
	for _, name := range []string{"user", "tenant", "api_key", "ip", "tier", "route", "method", "cost", "namespace"} {
		taken := false
		for _, arg := range args {
			taken = taken || strings.HasPrefix(arg, name+"=")
		}
		if !taken {
			names = append(names, name+"=")
		}
	}
	return names, cobra.ShellCompDirectiveNoSpace | cobra.ShellCompDirectiveNoFileComp
}
