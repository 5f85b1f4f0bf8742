package main

// The columns of the table: who calls.
//
//	0 nobody, without a token
//	1 a viewer, 2 an operator, 3 an admin of the namespace "own"
//	4 a viewer, 5 an operator, 6 an admin of all namespaces
//
// The letters: what must come of it.
//
//	. 401, who asks is not known
//	x 403, by the first wall: the table of routes and roles
//	o done
//	n 404, there is nothing
//
// A row has the calls that concern "own" and, where the route can concern another namespace, those that concern "other". All of it was
// written by hand from what the roles are for, and from nothing in the code that enforces it.
var expectations = map[string][]string{
	"GET /livez":            {"ooooooo"},
	"GET /readyz":           {"ooooooo"},
	"GET /healthz":          {"ooooooo"},
	"GET /metrics":          {"ooooooo"},
	"GET /v1/auth/login":    {"ooooooo"},
	"GET /v1/auth/callback": {"......."}, // nobody's browser was sent to the provider
	"POST /v1/auth/logout":  {"ooooooo"},

	"GET /v1/whoami":   {".oooooo"},
	"GET /v1/status":   {".xxxooo"},
	"GET /v1/rules":    {".oooooo", ".xxxooo"},
	"GET /v1/inspect":  {".oooooo", ".xxxooo"},
	"GET /v1/tail":     {".oooooo", ".xxxooo"},
	"POST /v1/explain": {".oooooo", ".xxxooo"},
	"POST /v1/refund":  {".xooxoo", ".xxxxoo"},
	"POST /v1/reset":   {".xooxoo", ".xxxxoo"},

	"POST /sluice.v1.AdminService/": {".xxxxoo"},
	"GET /debug/pprof/":             {".xxxxxo"},
	"GET /debug/pprof/profile":      {".xxxxxo"},
	"GET /debug/pprof/symbol":       {".xxxxxo"},
	"GET /debug/pprof/trace":        {".xxxxxo"},
	"GET /debug/pprof/cmdline":      {".xxxxxn"}, // is shown to nobody

	"GET /v1/namespaces":                      {".oooooo"},
	"POST /v1/namespaces":                     {".xxxxxo"},
	"GET /v1/namespaces/{ns}/rules":           {".oooooo", ".xxxooo"},
	"GET /v1/namespaces/{ns}/rules/{name}":    {".oooooo", ".xxxooo"},
	"PUT /v1/namespaces/{ns}/rules/{name}":    {".xxoxxo", ".xxxxxo"},
	"DELETE /v1/namespaces/{ns}/rules/{name}": {".xxoxxo", ".xxxxxo"},
	"POST /v1/namespaces/{ns}/rules:apply":    {".xxoxxo", ".xxxxxo"},
	"POST /v1/namespaces/{ns}/rollback":       {".xxoxxo", ".xxxxxo"},

	"GET /v1/overrides":         {".oooooo", ".xxxooo"},
	"POST /v1/overrides":        {".xooxoo", ".xxxxoo"},
	"GET /v1/overrides/{id}":    {".oooooo", ".nnnooo"}, // an id does not tell whose it is, so that of another is not found
	"PUT /v1/overrides/{id}":    {".xooxoo", ".xxxxoo"},
	"DELETE /v1/overrides/{id}": {".xooxoo", ".xnnxoo"},

	"GET /v1/tiers":           {".oooooo"},
	"GET /v1/tiers/{name}":    {".oooooo"},
	"PUT /v1/tiers/{name}":    {".xxxxxo"},
	"DELETE /v1/tiers/{name}": {".xxxxxo"},

	"GET /v1/subjects":                       {".xxxooo"},
	"GET /v1/subjects/{dimension}/{id}":      {".xxxooo"},
	"PUT /v1/subjects/{dimension}/{id}":      {".xxxxoo"},
	"DELETE /v1/subjects/{dimension}/{id}":   {".xxxxoo"},
	"POST /v1/subjects:import":               {".xxxxoo"},
	"GET /v1/blocks":                         {".xxxooo"},
	"GET /v1/blocks/{dimension}/{id}":        {".xxxooo"},
	"PUT /v1/blocks/{dimension}/{id}":        {".xxxxoo"},
	"DELETE /v1/blocks/{dimension}/{id}":     {".xxxxoo"},
	"GET /v1/exemptions":                     {".xxxooo"},
	"GET /v1/exemptions/{dimension}/{id}":    {".xxxooo"},
	"PUT /v1/exemptions/{dimension}/{id}":    {".xxxxoo"},
	"DELETE /v1/exemptions/{dimension}/{id}": {".xxxxoo"},

	"GET /v1/keys":              {".xxxooo"},
	"GET /v1/keys/{id}":         {".xxxooo"},
	"POST /v1/keys":             {".xxxxxo"},
	"POST /v1/keys/{id}/rotate": {".xxxxxo"},
	"DELETE /v1/keys/{id}":      {".xxxxxo"},
	"GET /v1/tokens":            {".xxxxxo"},
	"POST /v1/tokens":           {".xxxxxo"},
	"DELETE /v1/tokens/{id}":    {".xxxxxo"},

	"GET /v1/nodes":   {".oooooo"},
	"GET /v1/history": {".oooooo", ".xxxooo"},
}

// rows says what the database's own wall must let the application's user do with a row, for the same seven: o the row is seen or written,
// - it is not. Nobody is a transaction without settings.
var rows = []struct {
	table, of              string // of: a namespace, or "" where rows are in none
	see, add, change, drop string
}{
	{"namespaces", "own", "-oooooo", "------o", "-------", "-------"},
	{"namespaces", "other", "----ooo", "------o", "-------", "-------"},
	{"rules", "own", "-oooooo", "---o--o", "---o--o", "---o--o"},
	{"rules", "other", "----ooo", "------o", "------o", "------o"},
	{"overrides", "own", "-oooooo", "--oo-oo", "--oo-oo", "--oo-oo"},
	{"overrides", "other", "----ooo", "-----oo", "-----oo", "-----oo"},
	{"changes", "own", "-oooooo", "--oo-oo", "-------", "-------"},
	{"changes", "other", "----ooo", "-----oo", "-------", "-------"},
	{"changes", "", "----ooo", "-----oo", "-------", "-------"},
	{"tiers", "", "-oooooo", "------o", "------o", "------o"},
	{"subjects", "", "----ooo", "-----oo", "-----oo", "-----oo"},
	{"blocks", "", "----ooo", "-----oo", "-----oo", "-----oo"},
	{"exemptions", "", "----ooo", "-----oo", "-----oo", "-----oo"},
	{"api_keys", "", "----ooo", "------o", "------o", "-------"},
	{"tokens", "", "----ooo", "------o", "------o", "-------"},
}
