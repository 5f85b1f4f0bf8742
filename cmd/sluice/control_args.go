package main

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/internal/registry"
	"github.com/sluicehq/sluice/internal/ruledoc"
)

// The dimensions of subjects on record; networks are for blocks and exemptions.
var (
	subjectDimensions = []string{"user", "tenant", "api_key"}
	networkDimensions = []string{"user", "tenant", "api_key", "ip"}
)

// parseWho reads a subject, such as user=u_42.
func parseWho(text string, dimensions []string) (registry.Who, error) {
	dimension, id, found := strings.Cut(text, "=")
	if !found || id == "" || !slices.Contains(dimensions, dimension) {
		return registry.Who{}, usageError{fmt.Errorf("%q is no subject: write %s=ID", text, strings.Join(dimensions, "=ID, "))}
	}
	if dimension == "ip" {
		network, err := ruledoc.ParseCIDR(id)
		if err != nil {
			return registry.Who{}, usageError{err}
		}
		id = network.String()
		if network.IsSingleIP() {
			id = network.Addr().String()
		}
	}
	return registry.Who{Dimension: dimension, ID: id}, nil
}

// completeWho offers dimensions to shells.
func completeWho(dimensions []string) cobra.CompletionFunc {
	return func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		var names []string
		for _, d := range dimensions {
			names = append(names, d+"=")
		}
		return names, cobra.ShellCompDirectiveNoSpace | cobra.ShellCompDirectiveNoFileComp
	}
}

// parseInstant reads a moment: 2026-12-01T00:00:00Z, or a time from now, such as 24h or 30d. The empty text is none.
func parseInstant(text string, now time.Time) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	var after ruledoc.Duration
	if after.UnmarshalText([]byte(text)) == nil {
		return now.Add(after.Std()).UTC().Truncate(time.Second), nil
	}
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return at, usageError{fmt.Errorf("%q is no time: write 2026-12-01T00:00:00Z, or 24h or 30d from now", text)}
	}
	return at, nil
}

// errLimit tells how limits are written.
var errLimit = errors.New(`write "500 per 1h", "sliding_log 5 per 1m" or "token_bucket 10 per 1s burst 20"`)

// parseLimit reads a limit as people write it: [ALGORITHM] N per WINDOW [burst N].
func parseLimit(text string) (ruledoc.Limit, error) {
	words := strings.Fields(strings.ToLower(text))
	var l ruledoc.Limit
	if len(words) > 0 && (words[0][0] < '0' || words[0][0] > '9') {
		l.Algorithm, words = words[0], words[1:]
	}
	fail := func(err error) (ruledoc.Limit, error) {
		return l, usageError{fmt.Errorf("limit %q: %w", text, err)}
	}
	if len(words) != 3 && len(words) != 5 || words[1] != "per" || len(words) == 5 && words[3] != "burst" {
		return fail(errLimit)
	}
	var err error
	if l.Limit, err = strconv.ParseInt(words[0], 10, 64); err != nil {
		return fail(errLimit)
	}
	if err := l.Window.UnmarshalText([]byte(words[2])); err != nil {
		return fail(err)
	}
	if len(words) == 5 {
		if l.Burst, err = strconv.ParseInt(words[4], 10, 64); err != nil {
			return fail(errLimit)
		}
	}
	if _, err := (ruledoc.Override{Limits: []ruledoc.Limit{l}}).ToLimits(); err != nil {
		return fail(errors.New(strings.TrimPrefix(err.Error(), "limits[0]: ")))
	}
	return l, nil
}

// showLimits is the opposite of parseLimit, for tables.
func showLimits(limits []ruledoc.Limit) string {
	var texts []string
	for _, l := range limits {
		text := fmt.Sprintf("%d per %s", l.Limit, l.Window)
		if l.Algorithm != "" && l.Algorithm != sluice.SlidingWindow.String() {
			text = l.Algorithm + " " + text
		}
		if l.Burst > 0 {
			text += fmt.Sprintf(" burst %d", l.Burst)
		}
		texts = append(texts, text)
	}
	return strings.Join(texts, ", ")
}

func showWho(w registry.Who) string { return w.Dimension + "=" + w.ID }
