package initial

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"text/template"

	"idproxy/config"
)

//go:embed config.yaml.tmpl
var layout string

// file is what the template shows.
type file struct {
	*Plan
	Listeners []listener
	Store     string // its kind: file, mysql, etcd
	Password  string // a reference to that of the account
	DSN       string
	Grants    []string
}

type listener struct{ Name, Listen, Upstream string }

// YAML writes the configuration, and makes sure that it can be read: no name of a server's may
// have changed its shape.
func (p *Plan) YAML() ([]byte, error) {
	f := file{Plan: p, Store: p.store(), Grants: p.Grants()}
	if f.Store == "mysql" && strings.Contains(p.survey.Login.User, ":") {
		return nil, fmt.Errorf("account %q has a colon, and the dsn of a mysql store cannot name it: take another account, or --etcd", p.survey.Login.User)
	}
	for i, s := range p.survey.Shards {
		at, err := p.listen(i)
		if err != nil {
			return nil, err
		}
		f.Listeners = append(f.Listeners, listener{s.Name, at, s.At.String()})
	}
	text, err := f.text(p.survey.Login.Written)
	if err != nil {
		return nil, err
	}
	f.Kept = Kept{}
	read, err := f.text("x") // what the password is in is not looked at, nor what was in force before
	if err != nil {
		return nil, err
	}
	if _, err := config.Parse("idproxy.yaml", read, func(string) (string, bool) { return "", false }); err != nil {
		return nil, fmt.Errorf("what would be written is no configuration, and is not: %w", err)
	}
	return text, nil
}

// text is the file, with a reference to the account's password.
func (f file) text(password string) ([]byte, error) {
	first := f.survey.Shards[0].At
	f.Password = password
	f.DSN = fmt.Sprintf("%s:%s@%s(%s)/%s", f.User(), password, first.Network, escaped(first.Address), stateDatabase)
	made, err := template.New("").Funcs(template.FuncMap{"q": quoted, "name": func(s string) string { return quoted(escaped(s)) }, "line": line, "list": quotedList}).Parse(layout)
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	err = made.Execute(&b, f)
	return b.Bytes(), err
}

// store says where the state is kept.
func (p *Plan) store() string {
	switch {
	case len(p.Etcd) > 0:
		return "etcd"
	case p.Proxies > 1:
		return "mysql"
	}
	return "file"
}

// User is the account of all listeners.
func (f file) User() string { return escaped(f.survey.Login.User) }

// Said says of a source whose ids are the greatest.
func (f file) Said(s Source) string {
	if s.top == 0 {
		return "all are empty"
	}
	return fmt.Sprintf("the greatest id or counter is %d, of %s", s.top, s.of)
}

// Some are the first of the tables that are left out, as many as a file has room for.
func (f file) Some() []LeftOut { return f.LeftOut[:min(len(f.LeftOut), 200)] }

// Rest is how many more there are.
func (f file) Rest() int { return len(f.LeftOut) - len(f.Some()) }

// escaped writes a text so that no reference is read from it.
func escaped(s string) string { return strings.ReplaceAll(s, "$", "$$") }

// quoted writes a text as a scalar of YAML: as it is, where nothing can be read from it but text.
func quoted(s string) string {
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '_' || r == '.'
	}
	letter := s != "" && (s[0]|0x20 >= 'a' && s[0]|0x20 <= 'z')
	if letter && !strings.ContainsFunc(s, func(r rune) bool { return !plain(r) }) && !slices.Contains(words, strings.ToLower(s)) {
		return s
	}
	text, _ := json.Marshal(s) // of a string, it does not fail
	return string(text)
}

// words are those that some readers of YAML take for something else than text.
var words = []string{"y", "n", "yes", "no", "on", "off", "true", "false", "null", "inf", "nan"}

func quotedList(list []string) string {
	var out []string
	for _, s := range list {
		out = append(out, quoted(escaped(s)))
	}
	return "[" + strings.Join(out, ", ") + "]"
}

// line has a text stay on the line of its comment.
func line(s string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f || r == 0x85 || r == 0x2028 || r == 0x2029 || r == 0xfeff || r == 0xfffd {
			return ' '
		}
		return r
	}, s)
}
