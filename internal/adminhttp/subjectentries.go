package adminhttp

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/sluicehq/sluice/internal/postgres"
	"github.com/sluicehq/sluice/internal/registry"
	"github.com/sluicehq/sluice/internal/ruledoc"
)

// dimensions of subjects that something can be on record about; addresses only of blocks and exemptions.
var dimensions = []string{"user", "tenant", "api_key"}

// checkText reports a text that the database could not keep, or that nobody could read.
func checkText(pointer, text string, least, most int) []fault {
	switch n := utf8.RuneCountInString(text); {
	case !utf8.ValidString(text) || strings.ContainsRune(text, 0):
		return []fault{{pointer, "must be UTF-8 without NUL"}}
	case n < least:
		return []fault{{pointer, "is missing"}}
	case n > most:
		return []fault{{pointer, fmt.Sprintf("has %d characters: %d are the most", n, most)}}
	}
	return nil
}

// checkWho reports whether a subject is named well, and returns the name in the form in which it is kept.
func checkWho(who registry.Who, addresses bool) (registry.Who, []fault) {
	if who.Dimension == "ip" && addresses {
		network, err := ruledoc.ParseCIDR(who.ID)
		if err != nil {
			return who, []fault{{"/subject/id", err.Error()}}
		}
		who.ID = network.String()
		return who, nil
	}
	if !slices.Contains(dimensions, who.Dimension) {
		return who, []fault{{"/subject/dimension", fmt.Sprintf("is %q: want user, tenant or api_key, or ip for blocks and exemptions", who.Dimension)}}
	}
	return who, checkText("/subject/id", who.ID, 1, 255)
}

// whoOf is the subject in the path.
func whoOf(r *http.Request) registry.Who {
	who, _ := checkWho(registry.Who{Dimension: r.PathValue("dimension"), ID: r.PathValue("id")}, true)
	return who // one that is named badly is not found
}

// told is the subject in the path, which a body may repeat.
func told(r *http.Request, inBody registry.Who, addresses bool) (registry.Who, []fault) {
	who, faults := checkWho(registry.Who{Dimension: r.PathValue("dimension"), ID: r.PathValue("id")}, addresses)
	if inBody != (registry.Who{}) && faults == nil {
		if same, _ := checkWho(inBody, addresses); same != who {
			faults = []fault{{"/subject", "is another than the one in the path"}}
		}
	}
	return who, faults
}

func subjectEntries() entries[registry.Subject] {
	return entries[registry.Subject]{
		list: func(ctx context.Context, s *postgres.Scoped, _ *http.Request, p registry.Page) (registry.Listed[registry.Entry[registry.Subject]], error) {
			return s.Subjects(ctx, p)
		},
		get: func(ctx context.Context, s *postgres.Scoped, r *http.Request) (registry.Entry[registry.Subject], error) {
			return s.Subject(ctx, whoOf(r))
		},
		read: func(r *http.Request, body []byte) (registry.Subject, []fault) {
			var sub registry.Subject
			faults := decode(body, &sub)
			if faults == nil {
				sub.Who, faults = told(r, sub.Who, false)
				faults = append(faults, checkText("/tier", sub.Tier, 0, 128)...)
			}
			return sub, faults
		},
		put: func(ctx context.Context, s *postgres.Scoped, sub registry.Subject, e registry.Edit) (registry.Entry[registry.Subject], error) {
			return s.PutSubject(ctx, sub, e)
		},
		remove: func(ctx context.Context, s *postgres.Scoped, r *http.Request, e registry.Edit) error {
			return s.DeleteSubject(ctx, whoOf(r), e)
		},
	}
}

func blockEntries() entries[registry.Block] {
	return entries[registry.Block]{
		list: func(ctx context.Context, s *postgres.Scoped, _ *http.Request, p registry.Page) (registry.Listed[registry.Entry[registry.Block]], error) {
			return s.Blocks(ctx, p)
		},
		get: func(ctx context.Context, s *postgres.Scoped, r *http.Request) (registry.Entry[registry.Block], error) {
			return s.Block(ctx, whoOf(r))
		},
		read: func(r *http.Request, body []byte) (registry.Block, []fault) {
			var b registry.Block
			faults := decode(body, &b)
			if faults == nil {
				b.Who, faults = told(r, b.Who, true)
				faults = append(faults, checkText("/reason", b.Reason, 1, 2000)...)
			}
			b.Author = "" // whoever asks
			return b, faults
		},
		put: func(ctx context.Context, s *postgres.Scoped, b registry.Block, e registry.Edit) (registry.Entry[registry.Block], error) {
			return s.PutBlock(ctx, b, because(e, b.Reason))
		},
		remove: func(ctx context.Context, s *postgres.Scoped, r *http.Request, e registry.Edit) error {
			return s.DeleteBlock(ctx, whoOf(r), e)
		},
	}
}

func exemptionEntries() entries[registry.Exemption] {
	return entries[registry.Exemption]{
		list: func(ctx context.Context, s *postgres.Scoped, _ *http.Request, p registry.Page) (registry.Listed[registry.Entry[registry.Exemption]], error) {
			return s.Exemptions(ctx, p)
		},
		get: func(ctx context.Context, s *postgres.Scoped, r *http.Request) (registry.Entry[registry.Exemption], error) {
			return s.Exemption(ctx, whoOf(r))
		},
		read: func(r *http.Request, body []byte) (registry.Exemption, []fault) {
			var x registry.Exemption
			faults := decode(body, &x)
			if faults == nil {
				x.Who, faults = told(r, x.Who, true)
				faults = append(faults, checkText("/reason", x.Reason, 1, 2000)...)
			}
			x.Author = "" // whoever asks
			return x, faults
		},
		put: func(ctx context.Context, s *postgres.Scoped, x registry.Exemption, e registry.Edit) (registry.Entry[registry.Exemption], error) {
			return s.PutExemption(ctx, x, because(e, x.Reason))
		},
		remove: func(ctx context.Context, s *postgres.Scoped, r *http.Request, e registry.Edit) error {
			return s.DeleteExemption(ctx, whoOf(r), e)
		},
	}
}

// because takes the entry's reason for the change's where none was told.
func because(e registry.Edit, reason string) registry.Edit {
	if e.Reason == "" {
		e.Reason = reason
	}
	return e
}
