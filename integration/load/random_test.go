package load

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"idproxy/integration/assert"
	"idproxy/integration/harness"
	"idproxy/integration/servers"
	"idproxy/integration/width"
)

// loadRounds is how many random files each server is given; IDPROXY_LOAD_ROUNDS says another
// number.
func loadRounds(t *testing.T) int {
	if v := os.Getenv("IDPROXY_LOAD_ROUNDS"); v != "" {
		n := assert.Of(strconv.Atoi(v)).Must(t)
		return n
	}
	return width.Of(250, 1000)
}

// loadForm is a random statement, with the separators that its files are made of.
type loadForm struct {
	sql        string
	separators []string
	file       bool // the file brings ids
}

func pick[T any](r *rand.Rand, of ...T) T { return of[r.IntN(len(of))] }

// literal writes a separator as a string that both servers take, in any sql_mode of the test.
func literal(s string) string { return fmt.Sprintf("x'%x'", s) }

func randomForm(r *rand.Rand, kind servers.Kind) loadForm {
	var f loadForm
	var b strings.Builder
	sets := []string{"utf8mb4", "utf8mb4", "utf8mb3", "latin1", "gbk", "big5", "sjis", "cp932", "euckr", "gb2312", "ujis", "eucjpms", "binary"}
	if kind == servers.MySQL {
		sets = append(sets, "gb18030", "gb18030")
	}
	field := pick(r, ",", ",", "\t", "||", "ab", ",;,")
	line := pick(r, "\n", "\n", "\n", "\r\n", "", field, "|\n", "aab", "\\\n")
	fmt.Fprintf(&b, "LOAD DATA LOCAL INFILE 'f' %s INTO TABLE t CHARACTER SET %s FIELDS TERMINATED BY %s", pick(r, "", "", "IGNORE", "REPLACE"), pick(r, sets...), literal(field))
	f.separators = append(f.separators, field, line)
	if quote := pick(r, "", "", `"`, `"`, "'", "x"); quote != "" {
		fmt.Fprintf(&b, " %s ENCLOSED BY %s", pick(r, "", "OPTIONALLY"), literal(quote))
		f.separators = append(f.separators, quote, quote)
	}
	if escape := pick(r, "-", "-", "-", "", "!", `"`, "x"); escape != "-" {
		fmt.Fprintf(&b, " ESCAPED BY '%s'", escape)
		f.separators = append(f.separators, escape, escape)
	}
	fmt.Fprintf(&b, " LINES TERMINATED BY '%s'", strings.NewReplacer("\\", "\\\\", "\n", "\\n", "\r", "\\r").Replace(line))
	if start := pick(r, "", "", "", ">", "aba", "<<"); start != "" {
		fmt.Fprintf(&b, " STARTING BY %s", literal(start))
		f.separators = append(f.separators, start, start, start)
	}
	if n := r.IntN(6); n < 3 {
		fmt.Fprintf(&b, " IGNORE %d LINES", n)
	}
	list := pick(r, " (a,b)", " (a,b)", " (a,@v,b)", " (b) SET a='x'", " (a,b,u)", "", " (id,a,b)", " (a,id,b)", " (a,b,id)")
	f.file = list == "" || strings.Contains(list, "id")
	f.sql = b.String() + list
	return f
}

// loadAtoms are what files are made of beside separators: what looks like one, characters of
// several bytes, and parts of them.
var loadAtoms = []string{
	"a", "b", "x", "0", "0", "7", "N", `\N`, `\`, "NULL", `""`, "'", "!", ",", "|", ";", "\n", "\r", "\t", ">", "<", " ", "\x00", "0.4",
	"\xc3\xa4", "\xe2\x82\xac", "\xf0\x9f\x98\x80", "\x83\\", "\x95\\", "\xa1\x5c", "\x81\x30\x81\x30", "\x8e\xb1", "\x8f\xb0\xa1", "\xb0\xa1",
	"\x81", "\x83", "\x8e", "\x8f", "\xa1", "\xc3", "\xe2\x82", "\xe0", "\xf0\x9f", "\xf0", "\xfe", "\xff", "\x80", "\xb1",
}

func randomFile(r *rand.Rand, f loadForm) string {
	var b strings.Builder
	wild := r.IntN(3) // 0: few bytes beyond ASCII
	for range r.IntN(60) {
		switch {
		case r.IntN(3) == 0:
			b.WriteString(pick(r, f.separators...))
		case wild == 0:
			b.WriteString(pick(r, loadAtoms[:24]...))
		default:
			b.WriteString(pick(r, loadAtoms...))
		}
	}
	return b.String()
}

// The rows that the server reads of a file are the same, ids aside, whoever put the ids in.
func TestLoadDataRandom(t *testing.T) {
	t.Parallel()
	harness.EachServer(t, func(t *testing.T, s *servers.Server) {
		w := newLoadWorld(t, s)
		w.create("CREATE TABLE t (id BIGINT PRIMARY KEY AUTO, a VARBINARY(400) NOT NULL DEFAULT 'd', b VARBINARY(400), u INT UNIQUE) AUTO_INCREMENT=1000001 DEFAULT CHARSET utf8mb4")
		seed, loaded, refused := uint64(1), 0, 0
		if v := os.Getenv("IDPROXY_LOAD_SEED"); v != "" {
			seed, _ = strconv.ParseUint(v, 10, 64)
		}
		for i := range loadRounds(t) {
			r := rand.New(rand.NewPCG(seed, uint64(i)))
			form := randomForm(r, s.Kind)
			file := randomFile(r, form)
			native, filled := random(w.native, form, file), random(w.filled, form, file)
			switch {
			case strings.Contains(filled, "idproxy"): // refused or broken off, by name
				refused++
				if w.filled.Conn.PingContext(t.Context()) != nil {
					w.filled = harness.NewLoader(t, s.Config(w.filledDB), w.proxy.Addr("a"))
				}
			case native != filled:
				t.Errorf("round %d: %s\n%q\nnative:\n%s\nthrough idproxy:\n%s", i, form.sql, file, native, filled)
				if t.Failed() && i > 3000 {
					return
				}
			case bytes.Contains([]byte(native), []byte("new")):
				loaded++
			}
			w.native.Exec("DELETE FROM t")
			w.filled.Exec("DELETE FROM t")
		}
		f := (loadForm{sql: loadCSV + "(a,b)"})
		assert.True(t, random(w.native, f, "x,y\n") != random(w.filled, f, "x,z\n"), "a row that differs is not noticed")
		t.Logf("compared: %d files, seed %d", loadRounds(t), seed)
		t.Logf("%d files with rows, %d refused or broken off", loaded, refused)
		n := loadRounds(t)
		assert.True(t, loaded >= n/3 && refused <= n/3, "too few files were loaded")
	})
}

// invalid is MySQL's error for a broken character, which shows what happens to be in a buffer.
var invalid = regexp.MustCompile(`(?s)(Invalid [a-z0-9]+ character string: ).*?'(\n|" )`)

// random loads a random file and says what came of it. Warnings count where the file brings no ids.
func random(l *harness.Loader, f loadForm, file string) string {
	out := l.Load(f.sql, strings.NewReader(file)) + "\n"
	if !f.file {
		out += l.Rows("SHOW WARNINGS")
	}
	out = invalid.ReplaceAllString(quoted.ReplaceAllString(out, ""), "$1")
	return generatedIDs.ReplaceAllString(out, `"new"`) + l.Rows("SELECT IF(id>1000000,'new',id), HEX(a), HEX(b), u FROM t ORDER BY id")
}
