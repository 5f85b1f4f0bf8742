package postgres

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/json"

	"github.com/jackc/pgx/v5"

	"github.com/sluicehq/sluice/internal/registry"
	"github.com/sluicehq/sluice/internal/ruledoc"
)

var (
	//go:embed queries/rules.sql
	rulesSQL string
	//go:embed queries/rule.sql
	ruleSQL string
	//go:embed queries/put_rule.sql
	putRule string
	//go:embed queries/delete_rule.sql
	deleteRule string
)

func ruleAt(namespace, name string) place[ruledoc.Rule] {
	return place[ruledoc.Rule]{
		kind: registry.KindRule, namespace: namespace, name: name, get: ruleSQL, key: []any{namespace, name}, scan: scanRule,
	}
}

// scanRule reads a row. A body that is no rule, as direct SQL can write, is shown as a rule of that name without anything in it, so that
// operators can see, replace and delete it.
func scanRule(row pgx.CollectableRow) (registry.Rule, error) {
	var (
		r    registry.Rule
		text []byte
	)
	if err := row.Scan(&r.Namespace, &r.Name, &r.Version, &r.UpdatedAt, &r.UpdatedBy, &text); err != nil {
		return r, err
	}
	r.UpdatedAt = r.UpdatedAt.UTC()
	if err := decodeStrictly(text, &r.Body); err != nil {
		r.Body = ruledoc.Rule{}
	}
	r.Body.Namespace, r.Body.Name = r.Namespace, r.Name
	return r, nil
}

// decodeStrictly refuses fields it does not know: a rule without one of its conditions would apply to more than it should.
func decodeStrictly(text []byte, to any) error {
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	return d.Decode(to)
}

// encodeRule writes a body as it is kept: the columns have the names.
func encodeRule(r ruledoc.Rule) (string, error) {
	r.Namespace, r.Name = "", ""
	text, err := json.Marshal(r)
	return string(text), err
}

// Rules returns the rules of a namespace, by name.
func (s *Scoped) Rules(ctx context.Context, namespace string, p registry.Page) (registry.Listed[registry.Rule], error) {
	after, err := parseCursor(p.After, "")
	if err != nil {
		return registry.Listed[registry.Rule]{}, err
	}
	listed, err := list(ctx, s, p, scanRule, func(r registry.Rule) []string { return []string{r.Name} }, rulesSQL, namespace, after[0])
	return listed, fault("list rules", err)
}

// Rule returns a rule.
func (s *Scoped) Rule(ctx context.Context, namespace, name string) (registry.Rule, error) {
	return ruleAt(namespace, name).read(ctx, s)
}

// PutRule writes a rule into a namespace, whichever the rule itself names. It is not checked: validation is the caller's.
func (s *Scoped) PutRule(ctx context.Context, namespace string, r ruledoc.Rule, e registry.Edit) (registry.Rule, error) {
	text, err := encodeRule(r)
	if err != nil {
		return registry.Rule{}, err
	}
	return ruleAt(namespace, r.Name).put(ctx, s, e, putRule, namespace, r.Name, text)
}

// DeleteRule deletes a rule.
func (s *Scoped) DeleteRule(ctx context.Context, namespace, name string, e registry.Edit) error {
	return ruleAt(namespace, name).remove(ctx, s, e, deleteRule)
}
