package columns

import (
	"fmt"
	"strings"
	"testing"

	"idproxy/integration/assert"
	"idproxy/integration/harness"
	"idproxy/integration/servers"
	"idproxy/integration/wireclient"
)

// TestValuesThatReadTheID looks at what values read of the id column natively and behind the proxy, with triggers of several
// kinds. Where MariaDB has a BEFORE trigger, a column without a value is read as NULL, but 0 if it has a default or
// AUTO_INCREMENT; one that got NULL is read as NULL.
func TestValuesThatReadTheID(t *testing.T) {
	columns := map[string]string{"bare": "", "kept": " AUTO_INCREMENT", "zero": " DEFAULT 0 CHECK (id > 0)", "native": " AUTO_INCREMENT"}
	triggers := []string{"", "BEFORE INSERT", "BEFORE UPDATE", "AFTER INSERT"}
	harness.EachServer(t, func(t *testing.T, server *servers.Server) {
		db := harness.Database(t, server)
		direct := wireclient.Open(t, server.Addr, db)
		var rules []string
		for name, of := range columns {
			for i, trigger := range triggers {
				table := fmt.Sprint(name, i)
				direct.Must(t, "CREATE TABLE "+table+" (n VARCHAR(20), id BIGINT NOT NULL"+of+", PRIMARY KEY (id))")
				if trigger != "" {
					direct.Must(t, "CREATE TRIGGER "+table+"_t "+trigger+" ON "+table+" FOR EACH ROW SET @x = 1")
				}
				if name != "native" {
					rules = append(rules, fmt.Sprintf("{table: %s.%s, column: id, source: ids}", db, table))
				}
			}
		}
		proxy := harness.StartProxy(t, harness.OneListenerWith(server.Addr, "ids: {segment: {start: 1000}}", strings.Join(rules, ", ")))
		behind := wireclient.Open(t, proxy.Addr("a"), db)
		for name := range columns {
			s := behind
			if name == "native" {
				s = direct
			}
			for i, trigger := range triggers {
				r := idReads{t: t, s: s, direct: direct, table: fmt.Sprint(name, i), column: name}
				r.before = server.Kind == servers.MariaDB && strings.HasPrefix(trigger, "BEFORE")
				r.all()
			}
		}
	})
}

// idReads runs INSERTs into one table whose values read the id column.
type idReads struct {
	t         *testing.T
	s, direct *wireclient.Session
	table     string
	column    string
	before    bool // MariaDB has a BEFORE trigger
}

// reads is what a value finds in the column. listed: NULL for the id stands in front of it.
func (r *idReads) reads(listed bool) string {
	if r.before && (r.column == "bare" || r.column == "native" && listed) {
		return "NULL"
	}
	return "0"
}

// all runs every form of INSERT.
func (r *idReads) all() {
	for _, form := range []struct {
		text   string // with @ for the value
		listed bool
	}{
		{"(n) VALUES (@)", false},
		{"(n) VALUES (@), (@)", false},
		{"(n, id) VALUES (@, NULL), (@, 0)", false},
		{"(id, n) VALUES (NULL, @), (NULL, @)", true},
		{"(id, n) VALUES (0, @)", false},
		{"(id, n) VALUES (DEFAULT, @)", false},
		{"SET n = @", false},
		{"SET n = @, id = NULL", false},
		{"SET id = NULL, n = @", true},
	} {
		for value, want := range map[string]map[string]string{
			"id":                       {"0": "0", "NULL": "NULL"},
			r.table + ".`ID`":          {"0": "0", "NULL": "NULL"},
			"IFNULL(id, -1)":           {"0": "0", "NULL": "-1"},
			"CONCAT((SELECT id), 'x')": {"0": "0x", "NULL": "NULL"},
		} {
			text := "INSERT INTO " + r.table + " " + strings.ReplaceAll(form.text, "@", value)
			r.run(text, want[r.reads(form.listed)], strings.Count(form.text, "@"))
		}
	}
	r.run("INSERT INTO "+r.table+" (id, n) VALUES (5, id)", "5", 1)
	if r.column == "bare" {
		assert.Equal(r.t, r.table+": DEFAULT(id)", r.s.Fails(r.t, "INSERT INTO "+r.table+" (n) VALUES (DEFAULT(id))").Code, 1364)
		return
	}
	r.run("INSERT INTO "+r.table+" (n) VALUES (DEFAULT(id))", "0", 1)
}

// run runs an INSERT of rows as a text, prepared and by PREPARE, and looks at n in each of them.
func (r *idReads) run(text, want string, rows int) {
	wants := strings.TrimSuffix(strings.Repeat(want+" ", rows), " ")
	for way, insert := range map[string]func(){
		"text": func() { r.s.Must(r.t, text) },
		"prepared": func() {
			r.s.MustPrepare(r.t, "p", text)
			r.s.MustExecute(r.t, "p")
			assert.Of(r.s.CloseStatement("p")).Must(r.t)
		},
		"PREPARE": func() {
			r.s.Must(r.t, "PREPARE p FROM '"+strings.ReplaceAll(text, "'", "''")+"'", "EXECUTE p", "DEALLOCATE PREPARE p")
		},
	} {
		insert()
		got := r.direct.Value(r.t, "SELECT GROUP_CONCAT(IFNULL(n, 'NULL') ORDER BY id SEPARATOR ' ') FROM "+r.table)
		assert.Equal(r.t, way+" "+text, got, wants)
		r.direct.Must(r.t, "DELETE FROM "+r.table)
	}
}
