// Package adminauth says who may do what at the operators' door. Table is the only place where a route is given away: what is not in it
// nobody may. An Authenticator finds out who asks: by the configured token, by a token on record, or by a session from signing in.
//
// It is the first of two walls; the second is row-level security in the database, which goes by the same grants.
package adminauth

import (
	"context"

	"github.com/sluicehq/sluice/internal/registry"
)

// Everywhere is the namespace of a grant for all of them.
const Everywhere = "*"

var ranks = map[registry.Role]int{registry.Viewer: 1, registry.Operator: 2, registry.Admin: 3}

// Known tells whether there is such a role.
func Known(role registry.Role) bool { return ranks[role] > 0 }

// May tells whether the actor has the role, or one above it, in the namespace. Everywhere takes a grant for all of them.
func May(actor registry.Actor, role registry.Role, namespace string) bool {
	for _, g := range actor.Grants {
		if covers(g.Role, role) && (g.Namespace == Everywhere || g.Namespace == namespace && namespace != "") {
			return true
		}
	}
	return false
}

// MaySomewhere tells whether the actor has the role, or one above it, in any namespace.
func MaySomewhere(actor registry.Actor, role registry.Role) bool {
	for _, g := range actor.Grants {
		if covers(g.Role, role) && g.Namespace != "" {
			return true
		}
	}
	return false
}

// covers is false for roles that do not exist, on either side.
func covers(has, wants registry.Role) bool { return Known(wants) && ranks[has] >= ranks[wants] }

type contextKey struct{}

// WithActor returns a context that knows who asks.
func WithActor(ctx context.Context, actor registry.Actor) context.Context {
	return context.WithValue(ctx, contextKey{}, actor)
}

// ActorOf returns who asks; nobody, who may nothing, where that was not found out.
func ActorOf(ctx context.Context) registry.Actor {
	actor, _ := ctx.Value(contextKey{}).(registry.Actor)
	return actor
}
