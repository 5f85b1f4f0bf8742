package config

import (
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
)

// Options say where a configuration comes from. The zero value is what a program started without flags uses.
type Options struct {
	// Path is the configuration file. Default: the file named by SLUICE_CONFIG, else the first of Search that exists, else none.
	Path string
	// Overrides are the values given by flags; later ones win.
	Overrides []Override
	// Environ has the form of os.Environ. Default: os.Environ().
	Environ []string
	// OtherVariables begin with SLUICE_ and mean something else, so that they are not taken for mistyped settings.
	// Default: those by which the commands that ask a node find it.
	OtherVariables []string
	// Search lists the usual places. Default: ./sluice.toml, /etc/sluice/sluice.toml.
	Search []string
}

// Override is one value given by a flag.
type Override struct {
	// Field is the dotted name.
	Field string
	Value string
	// Flag is what messages call it, such as "--set" or "--listen".
	Flag string
}

// Loaded is a configuration that was checked as a whole, with the place each value came from.
type Loaded struct {
	Config Config
	// Origins has the origin of each value that is not a default, by its path, such as "redis.url" or
	// "gateway.route[0].path"; also of each list and table of the file, and of inline rules: "rule[0].limits[0].window".
	Origins map[string]Origin
	// Path is the file that was read; empty: none.
	Path string
	// Text is the file as it was read, for faults of inline rules to name their lines. It may hold secrets.
	Text []byte
	// Warnings are wishes that contradict each other or expose something, and can be carried out all the same.
	Warnings []string
}

// Origin returns where the value at a path was written: the zero Origin for a default.
func (l *Loaded) Origin(path string) Origin { return l.Origins[path] }

// Load reads file, environment and flags, in this order, and checks the whole. The error is an *Error with every fault there is.
func Load(opts Options) (*Loaded, error) {
	if opts.Environ == nil {
		opts.Environ = os.Environ()
	}
	if opts.Search == nil {
		opts.Search = []string{"sluice.toml", "/etc/sluice/sluice.toml"}
	}
	if opts.OtherVariables == nil {
		opts.OtherVariables = []string{envPrefix + "SERVER", envPrefix + "ADMIN"}
	}
	l := &loader{opts: opts, cfg: Default(), origins: map[string]Origin{}, environ: map[string]string{}}
	for _, entry := range opts.Environ {
		if name, value, _ := strings.Cut(entry, "="); strings.HasPrefix(name, envPrefix) {
			l.environ[name] = value
		}
	}

	readable := true
	if path, origin := l.search(); path != "" {
		readable = l.file(path, origin)
	}
	l.environment()
	l.overrides()
	l.fillEntries()
	l.resolvePaths()
	l.nameNode()
	l.unread = slices.Clone(l.faults)
	if readable { // else checks would speak about values that the file may well have set
		l.validate()
	}
	if len(l.faults) > 0 {
		sortFaults(l.faults)
		return nil, &Error{Faults: l.faults}
	}
	return &Loaded{Config: l.cfg, Origins: l.origins, Path: l.path, Text: l.data, Warnings: l.warnings}, nil
}

// loader is a configuration on its way.
type loader struct {
	opts     Options
	environ  map[string]string // the variables that begin with SLUICE_
	path     string            // of the file; empty: none
	data     []byte            // of the file
	places   *positions
	cfg      Config
	origins  map[string]Origin
	faults   []Fault
	unread   []Fault // those of values that could not be read, so that nothing else is said about them
	warnings []string
}

func (l *loader) fault(f Fault) { l.faults = append(l.faults, f) }

// resolvePaths makes the file names of the configuration file relative to its folder, and finds the default folder of
// rules. Names given by variables and flags are relative to where the program runs, as everywhere on a command line.
func (l *loader) resolvePaths() {
	dir := filepath.Dir(l.path)
	visit(reflect.ValueOf(&l.cfg).Elem(), "", "", func(f leaf) {
		if !isPath(f.name) || f.value.String() == "" || filepath.IsAbs(f.value.String()) {
			return
		}
		if l.origins[f.path].Kind == FromFile {
			f.value.SetString(filepath.Join(dir, f.value.String()))
		}
	})
	if _, written := l.origins["rules.dir"]; written {
		return
	}
	if info, err := os.Stat(filepath.Join(dir, "rules.d")); err == nil && info.IsDir() {
		l.cfg.Rules.Dir = filepath.Join(dir, "rules.d")
	}
}

// isPath tells that a field names a file or folder.
func isPath(name string) bool { return strings.HasSuffix(name, "_file") || name == "rules.dir" }

// nameNode names the node after its host, unless it was named.
func (l *loader) nameNode() {
	if _, written := l.origins["node"]; written {
		return
	}
	l.cfg.Node, _ = os.Hostname()
	if l.cfg.Node == "" {
		l.cfg.Node = "sluice"
	}
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
