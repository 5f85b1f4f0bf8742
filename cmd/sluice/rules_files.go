package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/sluicehq/sluice/internal/ruledoc"
)

// readRules reads rules files, and those in folders as a node would. Warnings go to notes; any other fault is an error that quotes the
// lines: rules are not tried or sent in part.
func readRules(notes io.Writer, paths []string) ([]*ruledoc.Parsed, error) {
	if len(paths) == 0 {
		return nil, usageError{errors.New("name the rules by --file, such as: -f rules.d/")}
	}
	files, err := listFiles(paths, func(name string) bool {
		format, known := ruledoc.FormatOf(name)
		return known && format != ruledoc.JSON
	})
	if err != nil {
		return nil, err
	}
	var parts []*ruledoc.Parsed
	var faults []ruledoc.Fault
	for _, name := range files {
		format, known := ruledoc.FormatOf(name)
		if !known {
			return nil, usageError{fmt.Errorf("%s is no rules file: want .toml, .yaml, .yml or .json", name)}
		}
		text, err := readBounded(name)
		if err != nil {
			return nil, err
		}
		parsed, found := ruledoc.Decode(name, format, text)
		parts, faults = append(parts, parsed), append(faults, found...)
	}
	return parts, tellFaults(notes, faults)
}

// readBounded reads a file as far as ruledoc looks, so that a wrong one does no harm.
func readBounded(name string) ([]byte, error) {
	file, err := os.Open(filepath.Clean(name))
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }()
	return io.ReadAll(io.LimitReader(file, ruledoc.MaxFileSize+1))
}

// listFiles returns the files named, and of folders those that are wanted, in the order of their names.
func listFiles(paths []string, wanted func(name string) bool) ([]string, error) {
	var files []string
	for _, path := range paths {
		info, err := os.Stat(path)
		if err != nil {
			return nil, err
		}
		if !info.IsDir() {
			files = append(files, path)
			continue
		}
		entries, err := os.ReadDir(path)
		if err != nil {
			return nil, err
		}
		before := len(files)
		for _, e := range entries {
			if !e.IsDir() && !strings.HasPrefix(e.Name(), ".") && wanted(e.Name()) {
				files = append(files, filepath.Join(path, e.Name()))
			}
		}
		if len(files) == before {
			return nil, fmt.Errorf("%s holds no such files", path)
		}
	}
	return files, nil
}

// tellFaults prints warnings and makes an error of the rest.
func tellFaults(notes io.Writer, faults []ruledoc.Fault) error {
	var text strings.Builder
	for _, f := range ruledoc.Cap(faults) {
		if f.Warning {
			_, _ = fmt.Fprintln(notes, f.Quote())
			continue
		}
		text.WriteString("\n" + f.Quote())
	}
	if text.Len() == 0 {
		return nil
	}
	return fmt.Errorf("the rules have faults:%s", text.String())
}

// byNamespace sorts the rules of files by their namespaces; those that name none are in the one given. In the result no rule names its
// own: it stands in the address.
func byNamespace(notes io.Writer, parts []*ruledoc.Parsed, otherwise string) (map[string][]ruledoc.Rule, error) {
	merged, faults := ruledoc.Merge(parts...)
	_, _, found := merged.Compile(nil)
	if err := tellFaults(notes, append(faults, found...)); err != nil {
		return nil, err
	}
	sorted, seen := map[string][]ruledoc.Rule{}, map[ruledoc.RuleName]bool{}
	for _, r := range merged.Document.Rules {
		name := ruledoc.RuleName{Namespace: cmp.Or(r.Namespace, otherwise), Name: r.Name}
		if seen[name] { // one names the namespace, the other is in it because it names none
			return nil, fmt.Errorf("rule %q is there twice in namespace %q: give one of them another name", name.Name, name.Namespace)
		}
		seen[name], r.Namespace = true, ""
		sorted[name.Namespace] = append(sorted[name.Namespace], r)
	}
	return sorted, nil
}

// leftOut tells which sections of files apply does not send.
func leftOut(parts []*ruledoc.Parsed) string {
	counts := map[string]int{}
	for _, p := range parts {
		d := &p.Document
		for noun, n := range map[string]int{"tiers": len(d.Tiers), "overrides": len(d.Overrides), "exemptions": len(d.Exemptions), "blocks": len(d.Blocks)} {
			counts[noun] += n
		}
	}
	var nouns []string
	for noun, n := range counts {
		if n > 0 {
			nouns = append(nouns, noun)
		}
	}
	slices.Sort(nouns)
	return strings.Join(nouns, ", ")
}
