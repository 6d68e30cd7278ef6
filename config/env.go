package config

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// outside is what a value can name that is not in the file.
type outside struct {
	variable func(name string) (string, bool)  // of the environment
	file     func(path string) (string, error) // its content
	dir      string                            // relative paths are relative to it
	read     []string                          // files that were read
}

// expand replaces ${NAME} by the environment's value, ${file:PATH} by what is in a file,
// ${credential:NAME} by what systemd's LoadCredential= has of that name, and $$ by a dollar sign.
// It works on one scalar after YAML was parsed, so no value can change the shape of the file. used
// reports whether anything came from outside.
func (o *outside) expand(raw string) (text string, used bool, problems []string) {
	var b strings.Builder
	for rest := raw; ; {
		before, after, found := strings.Cut(rest, "$")
		b.WriteString(before)
		if !found {
			return b.String(), used, problems
		}
		if strings.HasPrefix(after, "$") {
			b.WriteByte('$')
			rest = after[1:]
			continue
		}
		name, tail, closed := strings.Cut(strings.TrimPrefix(after, "{"), "}")
		if !strings.HasPrefix(after, "{") || !closed {
			return "", used, append(problems, alone)
		}
		value, problem := o.value(name)
		if problem == alone {
			return "", used, append(problems, problem)
		}
		if problem != "" {
			problems = append(problems, problem)
		}
		used = true
		b.WriteString(value)
		rest = tail
	}
}

// serviceCredentials is where systemd has those of the unit of the packages while that runs. Root and
// the unit's user can read them.
const serviceCredentials = "/run/credentials/idproxy.service"

const alone = "a \"$\" stands alone: write ${NAME} for an environment variable, ${file:PATH} for what is in a file, $$ for a dollar sign"

// value returns what a name stands for.
func (o *outside) value(name string) (text, problem string) {
	kind, what, named := strings.Cut(name, ":")
	switch {
	case named && kind == "file" && what != "":
		return o.content(what)
	case named && kind == "credential" && what != "" && what == filepath.Base(what):
		dir, set := o.variable("CREDENTIALS_DIRECTORY")
		if !set { // a command beside the service
			dir = serviceCredentials
		}
		if _, err := os.Stat(dir); !set && errors.Is(err, fs.ErrNotExist) {
			return "", fmt.Sprintf("there are no credentials: add LoadCredential=%s:PATH to the unit, and start it", what)
		}
		return o.content(filepath.Join(dir, what))
	case !validVariable(name):
		return "", alone
	}
	text, set := o.variable(name)
	if !set {
		return "", fmt.Sprintf("environment variable %s is not set: set it, or write the value here", name)
	}
	return text, ""
}

// content returns what is in a file, without the end of its last line.
func (o *outside) content(path string) (text, problem string) {
	if !filepath.IsAbs(path) {
		path = filepath.Join(o.dir, path)
	}
	text, err := o.file(path)
	if err != nil {
		return "", fmt.Sprintf("file %s: %v", path, err)
	}
	if text = strings.TrimSuffix(strings.TrimSuffix(text, "\n"), "\r"); text == "" {
		return "", fmt.Sprintf("file %s: it is empty", path)
	}
	if !slices.Contains(o.read, path) {
		o.read = append(o.read, path)
	}
	return text, ""
}

// maxValue is how many bytes a file has at most whose content is a value: more than any password.
const maxValue = 64 << 10

// readValue reads a file for a value. A file that does not end by itself, such as a pipe, is none.
func readValue(path string) (string, error) {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return "", bare(err)
	case !info.Mode().IsRegular():
		return "", errors.New("it is not a regular file")
	}
	f, err := os.Open(path)
	if err != nil {
		return "", bare(err)
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxValue+1))
	switch {
	case err != nil:
		return "", bare(err)
	case len(text) > maxValue:
		return "", fmt.Errorf("it has more than %d bytes: a value has fewer", maxValue)
	}
	return string(text), nil
}

// bare is an error without the path, which is said once.
func bare(err error) error {
	if of, ok := errors.AsType[*os.PathError](err); ok {
		return of.Err
	}
	return err
}

// noFile is for those who parse what they do not trust.
func noFile(string) (string, error) { return "", errors.New("files are not read here") }

func validVariable(s string) bool {
	if s == "" || s[0] >= '0' && s[0] <= '9' {
		return false
	}
	return !strings.ContainsFunc(s, func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '_')
	})
}
