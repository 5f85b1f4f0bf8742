package config

import (
	"encoding"
	"fmt"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

const (
	envPrefix = "SLUICE_"
	// fileVariable names the configuration file.
	fileVariable = envPrefix + "CONFIG"
	// fromFile behind a variable's name takes the value from the file named by it.
	fromFile = "_FILE"
)

// serviceLink is what Kubernetes puts into every container for a Service whose name begins with sluice: nobody meant
// it as configuration, and nobody can turn it off from inside.
var serviceLink = regexp.MustCompile(`^SLUICE_([A-Z0-9_]+_)?(SERVICE_HOST|SERVICE_PORT(_[A-Z0-9_]+)?|PORT(_\d+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?)?)$`)

// environment applies the SLUICE_ variables.
func (l *loader) environment() {
	settable := map[string]string{} // field by variable
	var known []string
	for _, f := range Fields() {
		if !f.FileOnly {
			settable[variable(f.Name)] = f.Name
			known = append(known, variable(f.Name))
		}
	}
	for _, name := range sortedKeys(l.environ) {
		if name == fileVariable || serviceLink.MatchString(name) || slices.Contains(l.opts.OtherVariables, name) {
			continue
		}
		origin := Origin{Kind: FromEnvironment, Name: name}
		if field, found := settable[name]; found {
			l.text(field, l.environ[name], origin)
			continue
		}
		base, isFile := strings.CutSuffix(name, fromFile)
		field, found := settable[base]
		if !isFile || !found {
			l.fault(Fault{Origin: origin, Problem: "unknown variable", Hint: variableHint(name, known)})
			continue
		}
		if _, both := l.environ[base]; both {
			l.fault(Fault{Origin: origin, Field: field, Problem: "is set by " + base + " as well", Hint: "unset one of them"})
			continue
		}
		l.textFile(field, l.environ[name], origin)
	}
}

func variableHint(name string, known []string) string {
	for _, f := range Fields() {
		if f.FileOnly && strings.HasPrefix(variable(f.Name)+"__", name+"__") {
			return "lists of tables are written in the file only"
		}
	}
	return didYouMean(name, known)
}

// textFile sets a field from a file, such as a mounted secret. Editors and echo end files with a newline: it is cut.
func (l *loader) textFile(field, path string, origin Origin) {
	data, err := os.ReadFile(path) //nolint:gosec // the operator names the file
	if err != nil {
		l.fault(Fault{Origin: origin, Field: field, Problem: err.Error()})
		return
	}
	l.text(field, strings.TrimRight(string(data), "\r\n"), origin)
}

// overrides applies the command line, in its order.
func (l *loader) overrides() {
	var known []string
	for _, f := range Fields() {
		known = append(known, f.Name)
	}
	for _, o := range l.opts.Overrides {
		origin := Origin{Kind: FromFlag, Name: o.Flag}
		i := slices.Index(known, o.Field)
		switch {
		case o.Field == "":
			l.fault(Fault{Origin: origin, Problem: "is not field=value", Hint: `write it as --set redis.url=redis://127.0.0.1:6379`})
		case i < 0:
			l.fault(Fault{Origin: origin, Field: o.Field, Problem: "unknown name", Hint: didYouMean(o.Field, known)})
		case Fields()[i].FileOnly:
			l.fault(Fault{Origin: origin, Field: o.Field, Problem: "cannot be set by a flag", Hint: "lists of tables are written in the file only"})
		case isSecret(Fields()[i].typ) || hasPassword(o.Value):
			// Every user of the machine can read the command line of a process.
			l.fault(Fault{
				Origin: origin, Field: o.Field, Problem: "holds a secret, which does not belong on the command line",
				Hint: "set " + variable(o.Field) + fromFile + " to the name of a file that holds it",
			})
		default:
			l.text(o.Field, o.Value, origin)
		}
	}
}

// text sets a field from the text of a variable or flag.
func (l *loader) text(field, text string, origin Origin) {
	dst := reflect.ValueOf(&l.cfg).Elem()
	for part := range strings.SplitSeq(field, ".") {
		ms := members(dst.Type())
		i := slices.IndexFunc(ms, func(m member) bool { return m.name == part })
		dst = dst.FieldByIndex(ms[i].index)
	}
	for path := range l.origins { // the elements of a list that is replaced
		if strings.HasPrefix(path, field+"[") || strings.HasPrefix(path, field+".") {
			delete(l.origins, path)
		}
	}
	l.origins[field] = origin
	fail := func(problem, hint string) {
		l.fault(Fault{Origin: origin, Field: field, Problem: problem, Hint: hint})
	}
	switch shapeOf(dst.Type()) {
	case list:
		parts := splitList(text)
		out := reflect.MakeSlice(dst.Type(), len(parts), len(parts))
		for i, part := range parts {
			if problem, hint := parseSingle(out.Index(i), part); problem != "" {
				fail(problem, hint)
			}
		}
		dst.Set(out)
	case dictionary:
		out := reflect.MakeMap(dst.Type())
		for _, part := range splitList(text) {
			key, value, found := strings.Cut(part, "=")
			if !found || key == "" {
				fail(fmt.Sprintf("%q is not name=value", part), "write it as name=value,name=value")
				continue
			}
			out.SetMapIndex(reflect.ValueOf(key), reflect.ValueOf(value))
		}
		dst.Set(out)
	default:
		if problem, hint := parseSingle(dst, text); problem != "" {
			fail(problem, hint)
		}
	}
}

// parseSingle sets a single value from text, by the same rules as in a file.
func parseSingle(dst reflect.Value, text string) (problem, hint string) {
	if _, ok := dst.Addr().Interface().(encoding.TextUnmarshaler); ok || dst.Kind() == reflect.String {
		return setSingle(dst, text)
	}
	if dst.Kind() == reflect.Bool {
		if v, err := strconv.ParseBool(text); err == nil {
			return setSingle(dst, v)
		}
		return fmt.Sprintf("%q is not a boolean", text), "want true or false"
	}
	if v, err := strconv.ParseInt(text, 10, 64); err == nil {
		return setSingle(dst, v)
	}
	return fmt.Sprintf("%q is not a whole number", text), ""
}

// splitList splits at commas; the empty text is the empty list.
func splitList(text string) []string {
	if strings.TrimSpace(text) == "" {
		return nil
	}
	parts := strings.Split(text, ",")
	for i := range parts {
		parts[i] = strings.TrimSpace(parts[i])
	}
	return parts
}
