package postgres_test

import (
	"bytes"
	"sync"
	"testing"
	"time"

	"github.com/sluicehq/sluice/internal/registry"
	"github.com/sluicehq/sluice/internal/testpg"
)

// hash stands for an HMAC.
func hash(b byte) []byte { return bytes.Repeat([]byte{b}, 32) }

func key(id string) registry.Key {
	return registry.Key{ID: id, Name: "ci", Owner: "u_1", Tenant: "acme", Tier: "pro", Hashes: [][]byte{hash(1)}}
}

func TestKeys_RotateWithTwoValidSecretsAndEndByRevocation(t *testing.T) {
	t.Parallel()
	db, d := open(t)
	s := db.As(root)
	created := must(s.CreateKey(t.Context(), key("k1"), by))(t)
	if created.Body.CreatedBy != "ann" || created.Body.CreatedAt.IsZero() || created.Name != "k1" {
		t.Errorf("created %+v", created)
	}
	_, err := s.CreateKey(t.Context(), key("k1"), by)
	wantErr(t, "CreateKey of an id that is taken", err, registry.ErrExists)

	until := time.Now().Add(time.Hour).Truncate(time.Microsecond).UTC()
	must(s.RotateKey(t.Context(), "k1", hash(2), until, by))(t)
	got := must(db.Record(t.Context(), registry.Who{Dimension: "api_key", ID: "k1"}))(t)
	if got.Key == nil || len(got.Key.Hashes) != 2 || !bytes.Equal(got.Key.Hashes[0], hash(2)) || !bytes.Equal(got.Key.Hashes[1], hash(1)) ||
		!got.Key.OldUntil.Equal(until) || got.Tier != "pro" || got.Key.Owner != "u_1" || got.Key.Tenant != "acme" {
		t.Errorf("record during a rotation: %+v", got.Key)
	}
	d.Exec(t, testpg.Superuser, "UPDATE sluice.api_keys SET old_until = now() - interval '1 s'")
	if got := must(db.Record(t.Context(), registry.Who{Dimension: "api_key", ID: "k1"}))(t); len(got.Key.Hashes) != 1 || !got.Key.OldUntil.IsZero() {
		t.Errorf("record after the old secret's time: %+v", got.Key)
	}

	must(s.RevokeKey(t.Context(), "k1", registry.Edit{Actor: "bob", Reason: "leaked"}))(t)
	got = must(db.Record(t.Context(), registry.Who{Dimension: "api_key", ID: "k1"}))(t)
	if got.Key.RevokedAt.IsZero() || got.Key.RevokedBy != "bob" {
		t.Errorf("record after the revocation: %+v", got.Key)
	}
	_, err = s.RevokeKey(t.Context(), "k1", by)
	wantErr(t, "revoke again", err, registry.ErrNotFound)
	_, err = s.RotateKey(t.Context(), "k1", hash(3), until, by)
	wantErr(t, "rotate what is revoked", err, registry.ErrNotFound)
	if got := must(db.Record(t.Context(), registry.Who{Dimension: "api_key", ID: "k2"}))(t); got.Found || got.Key != nil {
		t.Errorf("record of no key: %+v", got)
	}
	for want, f := range map[int]registry.KeyFilter{1: {Owner: "u_1", Tenant: "acme"}, 0: {Owner: "u_2"}} {
		if got := must(s.Keys(t.Context(), f, registry.Page{}))(t); len(got.Items) != want {
			t.Errorf("%+v: %d keys, want %d", f, len(got.Items), want)
		}
	}
}

func TestKeys_HashesStayOutOfTheHistory(t *testing.T) {
	t.Parallel()
	db, d := open(t)
	s := db.As(root)
	must(s.CreateKey(t.Context(), key("k1"), by))(t)
	must(s.RotateKey(t.Context(), "k1", hash(0x41), time.Now().Add(time.Hour), by))(t)
	must(s.CreateToken(t.Context(), registry.Token{ID: "t1", Name: "ci", Hash: hash(0x42)}, by))(t)
	var found int
	err := session(t, d, testpg.Superuser).QueryRow(t.Context(),
		`SELECT count(*) FROM sluice.changes WHERE changes::text LIKE '%QUFB%' OR changes::text LIKE '%4141%' OR changes::text LIKE '%AQEB%' OR changes::text LIKE '%4242%'`).Scan(&found)
	if err != nil || found != 0 {
		t.Errorf("%d changes hold a hash (%v)", found, err)
	}
}

func TestAddUses_AddsUpAcrossNodes(t *testing.T) {
	t.Parallel()
	db, _ := open(t)
	s := db.As(root)
	for _, id := range []string{"k1", "k2"} {
		must(s.CreateKey(t.Context(), key(id), by))(t)
	}
	var nodes sync.WaitGroup
	for range 4 {
		nodes.Go(func() {
			for range 10 {
				err := db.AddUses(t.Context(), map[string]registry.Use{
					"k2": {Count: 2, Last: noon}, "k1": {Count: 1, Last: noon.Add(time.Hour)}, "unknown": {Count: 9, Last: noon}, "\x00": {Count: 1},
				})
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	nodes.Wait()
	if err := db.AddUses(t.Context(), map[string]registry.Use{"k1": {Count: 1, Last: noon}}); err != nil {
		t.Error(err)
	}
	k1, k2 := must(s.Key(t.Context(), "k1"))(t), must(s.Key(t.Context(), "k2"))(t)
	if k1.Body.Uses != 41 || !k1.Body.LastUsedAt.Equal(noon.Add(time.Hour)) || k2.Body.Uses != 80 || !k2.Body.LastUsedAt.Equal(noon) {
		t.Errorf("uses %d until %v and %d until %v", k1.Body.Uses, k1.Body.LastUsedAt, k2.Body.Uses, k2.Body.LastUsedAt)
	}
	if got := must(db.Revision(t.Context()))(t); got != 2 {
		t.Errorf("revision %d, want 2: uses are no changes", got)
	}
}

func TestTokens_AreFoundByIDAndRevoked(t *testing.T) {
	t.Parallel()
	db, _ := open(t)
	s := db.As(root)
	grants := []registry.Grant{{Namespace: "shop", Role: registry.Operator}}
	must(s.CreateToken(t.Context(), registry.Token{ID: "t1", Name: "ci", Grants: grants, Hash: hash(5), ExpiresAt: noon}, by))(t)
	got := must(db.TokenByID(t.Context(), "t1"))(t)
	if got.Name != "ci" || len(got.Grants) != 1 || got.Grants[0] != grants[0] || !bytes.Equal(got.Hash, hash(5)) || !got.ExpiresAt.Equal(noon) || got.CreatedBy != "ann" {
		t.Errorf("token %+v", got)
	}
	must(s.RevokeToken(t.Context(), "t1", by))(t)
	if got := must(db.TokenByID(t.Context(), "t1"))(t); got.RevokedAt.IsZero() {
		t.Errorf("revoked: %+v", got)
	}
	_, err := s.RevokeToken(t.Context(), "t1", by)
	wantErr(t, "revoke again", err, registry.ErrNotFound)
	for _, id := range []string{"none", "", "\x00"} {
		_, err = db.TokenByID(t.Context(), id)
		wantErr(t, "TokenByID "+id, err, registry.ErrNotFound)
	}
	if got := must(s.Tokens(t.Context(), registry.Page{}))(t); len(got.Items) != 1 {
		t.Errorf("listed %+v", got.Items)
	}
}
