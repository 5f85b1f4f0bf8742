package adminauth

import "github.com/sluicehq/sluice/internal/registry"

// Need is what a route asks of whoever calls it. The zero value asks for what nobody has.
type Need struct {
	Role  registry.Role
	Scope Scope
}

// Scope says in which namespace the role is needed.
type Scope uint8

// The scopes.
const (
	// All needs a grant for every namespace: what is done acts in all of them.
	All Scope = iota
	// Any is content with a grant in some namespace: what is shown is held to the actor's grants.
	Any
	// Path is the namespace in the URL's path.
	Path
	// Query is the one in ?namespace=, "default" where it is missing.
	Query
	// QueryOrAll is the one in ?namespace=, and all where it is missing.
	QueryOrAll
	// Request is the one in the body, which is a request as the check API takes.
	Request
	// Entry is the one that the entry is in. Until that is known a grant in some namespace is needed; then the handler asks again.
	Entry
)

// Table returns what each route needs, by the pattern it is registered under. A route that is not here is refused to all.
func Table() map[string]Need {
	viewer, operator, admin := registry.Viewer, registry.Operator, registry.Admin
	return map[string]Need{
		"GET /v1/whoami":   {viewer, Any},
		"GET /v1/status":   {viewer, All}, // it names faulty rules, of whichever namespace
		"GET /v1/rules":    {viewer, Any},
		"GET /v1/inspect":  {viewer, Query},
		"GET /v1/tail":     {viewer, QueryOrAll},
		"POST /v1/explain": {viewer, Request},
		"POST /v1/refund":  {operator, Request},
		"POST /v1/reset":   {operator, Request},

		"POST /sluice.v1.AdminService/": {operator, All}, // the namespace is in a message that is not read here
		"GET /debug/pprof/":             {admin, All},
		"GET /debug/pprof/cmdline":      {admin, All},
		"GET /debug/pprof/profile":      {admin, All},
		"GET /debug/pprof/symbol":       {admin, All},
		"GET /debug/pprof/trace":        {admin, All},

		"GET /v1/namespaces":                      {viewer, Any},
		"POST /v1/namespaces":                     {admin, All},
		"GET /v1/namespaces/{ns}/rules":           {viewer, Path},
		"GET /v1/namespaces/{ns}/rules/{name}":    {viewer, Path},
		"PUT /v1/namespaces/{ns}/rules/{name}":    {admin, Path},
		"DELETE /v1/namespaces/{ns}/rules/{name}": {admin, Path},
		"POST /v1/namespaces/{ns}/rules:apply":    {admin, Path},
		"POST /v1/namespaces/{ns}/rollback":       {admin, Path},

		"GET /v1/overrides":         {viewer, Any},
		"POST /v1/overrides":        {operator, Entry},
		"GET /v1/overrides/{id}":    {viewer, Entry},
		"PUT /v1/overrides/{id}":    {operator, Entry},
		"DELETE /v1/overrides/{id}": {operator, Entry},

		// Tiers stand in the rules of every namespace.
		"GET /v1/tiers":           {viewer, Any},
		"GET /v1/tiers/{name}":    {viewer, Any},
		"PUT /v1/tiers/{name}":    {admin, All},
		"DELETE /v1/tiers/{name}": {admin, All},

		"GET /v1/subjects":                       {viewer, All},
		"GET /v1/subjects/{dimension}/{id}":      {viewer, All},
		"PUT /v1/subjects/{dimension}/{id}":      {operator, All},
		"DELETE /v1/subjects/{dimension}/{id}":   {operator, All},
		"POST /v1/subjects:import":               {operator, All},
		"GET /v1/blocks":                         {viewer, All},
		"GET /v1/blocks/{dimension}/{id}":        {viewer, All},
		"PUT /v1/blocks/{dimension}/{id}":        {operator, All},
		"DELETE /v1/blocks/{dimension}/{id}":     {operator, All},
		"GET /v1/exemptions":                     {viewer, All},
		"GET /v1/exemptions/{dimension}/{id}":    {viewer, All},
		"PUT /v1/exemptions/{dimension}/{id}":    {operator, All},
		"DELETE /v1/exemptions/{dimension}/{id}": {operator, All},

		"GET /v1/keys":              {viewer, All},
		"POST /v1/keys":             {admin, All},
		"GET /v1/keys/{id}":         {viewer, All},
		"DELETE /v1/keys/{id}":      {admin, All},
		"POST /v1/keys/{id}/rotate": {admin, All},
		"GET /v1/tokens":            {admin, All},
		"POST /v1/tokens":           {admin, All},
		"DELETE /v1/tokens/{id}":    {admin, All},

		"GET /v1/nodes":   {viewer, Any},
		"GET /v1/history": {viewer, Any},
	}
}
