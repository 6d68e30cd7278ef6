package main

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"idproxy/cmd/idproxy/admin"
	"idproxy/cmd/idproxy/app"
	"idproxy/cmd/idproxy/check"
	"idproxy/cmd/idproxy/migrate"
	"idproxy/integration/assert"
	"idproxy/integration/harness"
	"idproxy/monitor"
)

// printed is what commands print as JSON.
var printed = map[string]any{
	"idproxy check": check.Report{}, "idproxy explain": outcomes{}, "idproxy version": app.Build{}, "idproxy decode": admin.Decoded{},
	"idproxy source list": sourceList{}, "idproxy source show": admin.Standing{}, "idproxy source set": admin.Moved{},
	"idproxy source create": admin.Moved{}, "idproxy source describe": admin.Described{}, "idproxy source history": admin.History{},
	"idproxy source create --all": seriesOpened{}, "idproxy source import --format idproxy": seriesMoved{},
	"idproxy source import": importList{}, "idproxy source adopt": admin.Adopted{},
	"idproxy migrate":   migrate.Report{},
	"idproxy status":    monitor.State{},
	"idproxy user list": admin.UserList{}, "idproxy user add": admin.NewUser{}, "idproxy user remove": admin.RemovedUser{},
	"idproxy worker list": admin.Pool{}, "idproxy worker add": admin.Added{}, "idproxy worker drop": admin.Removed{},
}

// fieldsOf lists the fields that a type has as JSON. One that was listed before, in a list of
// itself or of another command, is named only.
func fieldsOf(t reflect.Type, prefix string, known map[reflect.Type]bool) (fields []string) {
	for i := range t.NumField() {
		f := t.Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name == "-" || !f.IsExported() {
			continue
		}
		of, dots := f.Type, "."
		if of.Kind() == reflect.Slice {
			of, dots = of.Elem(), "[]."
		}
		if of.Kind() == reflect.Pointer {
			of = of.Elem()
		}
		switch structure := of.Kind() == reflect.Struct && of != reflect.TypeFor[time.Time](); {
		case f.Anonymous:
			fields = append(fields, fieldsOf(of, prefix, known)...)
		case !structure:
			fields = append(fields, prefix+name)
		case known[of]:
			fields = append(fields, prefix+name+"[]")
		default:
			fields = append(fields, fieldsOf(of, prefix+name+dots, known)...)
		}
	}
	return fields
}

// TestJSONIsDocumented: the page of the commands lists each field that a command prints as JSON,
// and no other.
func TestJSONIsDocumented(t *testing.T) {
	page := assert.Of(os.ReadFile("../../docs/commands.md")).Must(t)
	documented := map[string][]string{}
	command := ""
	field := regexp.MustCompile("^\\| `([^`]*)` \\|")
	for line := range strings.Lines(string(page)) {
		if name, ok := strings.CutPrefix(line, "### "); ok {
			command = strings.TrimSpace(name)
		}
		if m := field.FindStringSubmatch(line); m != nil && command != "" {
			documented[command] = append(documented[command], m[1])
		}
	}
	got, want := slices.Sorted(maps.Keys(documented)), slices.Sorted(maps.Keys(printed))
	assert.True(t, slices.Equal(got, want), "documented are %q, want %q", got, want)
	for command, facts := range printed {
		want := fieldsOf(reflect.TypeOf(facts), "", map[reflect.Type]bool{reflect.TypeFor[admin.Standing](): true})
		got := documented[command]
		assert.True(t, slices.Equal(got, want), "%s: documented are %q, it prints %q", command, got, want)
		for _, field := range want {
			assert.True(t, !strings.Contains(field, "seconds"), "%s: %s is no number of milliseconds", command, field)
		}
	}
}

// TestEachCommandHasJSON: --json is there wherever facts are printed.
func TestEachCommandHasJSON(t *testing.T) {
	var walk func(c *cobra.Command)
	walk = func(c *cobra.Command) {
		for _, below := range c.Commands() {
			walk(below)
		}
		_, facts := printed[c.CommandPath()]
		has := c.Flags().Lookup("json") != nil || c.InheritedFlags().Lookup("json") != nil
		assert.True(t, c.HasSubCommands() || has == facts, "%s: --json %v, facts %v", c.CommandPath(), has, facts)
	}
	walk(commandLine(streams{}))
}

// TestExplainJSON has explain print outcomes of all kinds.
func TestExplainJSON(t *testing.T) {
	for _, tt := range []struct {
		sql    string
		status int
		want   string
	}{
		{"SELECT 1", 0, `{"statement":"SELECT 1","becomes":"forwarded","notes":["forwarded unchanged: nothing a rule is concerned with"],"sent":"SELECT 1"}`},
		{
			"INSERT INTO shop.orders (a) VALUES ('x')", 0, `{"statement":"INSERT INTO shop.orders (a) VALUES ('x')","becomes":"filled",` +
				`"notes":["rule shop.orders.id: 1 of 1 rows get ids from source ids; here 1 to 1 stand for them"],"sent":"INSERT INTO shop.orders (a,` + "`id`" + `) VALUES ('x',LAST_INSERT_ID(1))"}`,
		},
		{
			"INSERT INTO shop.strict (id) VALUES (1)", 1, `{"statement":"INSERT INTO shop.strict (id) VALUES (1)","becomes":"refused","rule":"shop.strict.id",` +
				`"notes":["refused by rule shop.strict.id: explicit: reject, and the statement gives id a value of its own"]}`,
		},
		{"PREPARE s FROM @v", 0, `{"statement":"PREPARE s FROM @v","becomes":"depends","notes":["the server is asked for the text first; an INSERT into a table with a rule is treated as one in a literal, all else is forwarded unchanged"],"sent":"PREPARE s FROM @v"}`},
		{"INSERT INTO shop.orders VALUES (1)", 1, `{"statement":"INSERT INTO shop.orders VALUES (1)","becomes":"unknown","notes":["rule shop.orders.id: the columns of the table are needed; ask again with --online"]}`},
	} {
		got := runWith(t, tt.sql+"; ", "explain", "--json", "--config", explainConfig, "-")
		var all struct{ Statements []json.RawMessage }
		err := json.Unmarshal([]byte(got.out), &all)
		assert.MustTrue(t, err == nil && len(all.Statements) == 1 && got.status == tt.status, "%s: %v: %+v", tt.sql, err, got)
		var one, want any
		assert.Must(t, json.Unmarshal(all.Statements[0], &one))
		assert.Must(t, json.Unmarshal([]byte(tt.want), &want))
		assert.True(t, reflect.DeepEqual(one, want), "%s: %s, want %s", tt.sql, got.out, tt.want)
	}
	got := runWith(t, "", "explain", "--json", "--config", explainConfig, "")
	assert.True(t, got.status == statusFine && strings.Contains(got.out, `"statements": []`), "of nothing: %+v", got)
}

func TestVersionJSON(t *testing.T) {
	var b app.Build
	got := runWith(t, "", "version", "--json")
	assert.True(t, json.Unmarshal([]byte(got.out), &b) == nil && b.Version != "" && strings.HasPrefix(b.Go, "go1."), "%+v", got)
}

// TestManPages: there is one for each command.
func TestManPages(t *testing.T) {
	dir := t.TempDir()
	assert.MustEqual(t, `runWith("", "man", dir)`, runWith(t, "", "man", dir), ran{})
	for command := range printed {
		command, _, _ = strings.Cut(command, " --")
		page := assert.Of(os.ReadFile(filepath.Join(dir, strings.ReplaceAll(command, " ", "-")+".1"))).Must(t)
		holds(t, "its man page", string(page), ".SH EXAMPLE")
		holds(t, "its title", string(page), `.TH "`+strings.ToUpper(strings.ReplaceAll(command, " ", "-"))+`" "1"`)
	}
	got := runWith(t, "", "man", filepath.Join(dir, "gone"))
	assert.True(t, got.status == statusFinding, "into no folder: %+v", got)
	got = runWith(t, "", "check", "--json", "--config", harness.WriteConfig(t, "listeners: 5\n"))
	assert.True(t, got.status == statusFinding && strings.Contains(got.out, `"level": "error"`), "check --json: %+v", got)
}
