package config

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"reflect"
	"slices"
	"strings"

	"github.com/pelletier/go-toml/v2"
)

// maxFile bounds what is read into memory: a file that is larger is not a configuration.
const maxFile = 16 << 20

// search finds the configuration file: where it was said to be, else the first of the usual places that exists, else none.
func (l *loader) search() (path string, origin Origin) {
	if l.opts.Path != "" {
		return l.opts.Path, Origin{Kind: FromFlag, Name: "--config"}
	}
	if path := l.environ[fileVariable]; path != "" {
		return path, Origin{Kind: FromEnvironment, Name: fileVariable}
	}
	for _, path := range l.opts.Search {
		if _, err := os.Stat(path); err == nil {
			return path, Origin{}
		}
	}
	return "", Origin{}
}

// file reads the configuration file into the Config. It reports whether the file could be read at all, so that what
// it may have said can be checked.
func (l *loader) file(path string, origin Origin) bool {
	data, err := readBounded(path)
	if err != nil {
		hint := ""
		if errors.Is(err, fs.ErrNotExist) {
			hint = "name an existing file, or none to run with the defaults"
		}
		l.fault(Fault{Origin: origin, Problem: "configuration file: " + err.Error(), Hint: hint})
		return false
	}
	var doc map[string]any
	if err := toml.Unmarshal(data, &doc); err != nil {
		at := Origin{Kind: FromFile, Name: path}
		var decode *toml.DecodeError
		if errors.As(err, &decode) {
			at.Line, at.Column = decode.Position()
		}
		l.fault(Fault{Origin: at, Problem: syntaxProblem(err)})
		return false
	}
	l.path, l.data, l.places = path, data, locate(data)
	l.table(reflect.ValueOf(&l.cfg).Elem(), doc, "")
	return true
}

// syntaxProblem is the parser's message up to the first thing longer than a character that it quotes: that may be part
// of a secret.
func syntaxProblem(err error) string {
	text := strings.TrimPrefix(err.Error(), "toml: ")
	for i := 0; i < len(text); i++ {
		if !strings.ContainsRune("'\"`", rune(text[i])) {
			continue
		}
		if i+2 >= len(text) || text[i+2] != text[i] {
			text = strings.TrimRight(text[:i], " :")
			break
		}
		i += 2
	}
	if strings.HasPrefix(text, "unexpected character") {
		text += "; texts stand in quotes"
	}
	return "not valid TOML: " + text
}

func readBounded(path string) ([]byte, error) {
	f, err := os.Open(path) //nolint:gosec // the operator names the file
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err != nil {
		return nil, err
	}
	if len(data) > maxFile {
		return nil, fmt.Errorf("%s is larger than %d MiB", path, maxFile>>20)
	}
	return data, nil
}

// place is the origin of a path in the file; of one that is not written by itself, that of the table it is in.
func (l *loader) place(path string) Origin {
	o := Origin{Kind: FromFile, Name: l.path}
	for p := path; p != ""; {
		if at, found := l.places.at[p]; found {
			o.Line, o.Column = at.line, at.column
			return o
		}
		p = p[:max(strings.LastIndexByte(p, '.'), strings.LastIndexByte(p, '['), 0)]
	}
	return o
}

// table puts what a TOML table holds into a struct.
func (l *loader) table(dst reflect.Value, src map[string]any, path string) {
	ms := members(dst.Type())
	for key, v := range src {
		at := joinKey(path, key)
		i := slices.IndexFunc(ms, func(m member) bool { return m.name == key })
		if i < 0 {
			l.fault(Fault{Origin: l.place(at), Field: at, Problem: "unknown name", Hint: l.unknownHint(key, ms, path)})
			continue
		}
		l.value(dst.FieldByIndex(ms[i].index), v, at)
	}
}

// unknownHint names what was probably meant: a name of the same table, or the same name in another table.
func (l *loader) unknownHint(key string, ms []member, path string) string {
	if hint := didYouMean(key, names(ms)); hint != "" {
		return hint
	}
	for _, f := range Fields() {
		if table, name, found := cutLast(f.Name); found && name == key && table != path && path == "" {
			return fmt.Sprintf("did you mean %q?", f.Name)
		}
	}
	return "known here: " + strings.Join(names(ms), ", ")
}

func cutLast(name string) (before, after string, found bool) {
	i := strings.LastIndexByte(name, '.')
	if i < 0 {
		return "", name, false
	}
	return name[:i], name[i+1:], true
}
