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

// loadWorld is a table twice: with AUTO_INCREMENT, loaded directly, and with a plain column, loaded
// through idproxy.
type loadWorld struct {
	server         *servers.Server
	native, filled *harness.Loader
	proxy          *harness.Proxy
	nativeDB       string
	filledDB       string
}

func newLoadWorld(t *testing.T, s *servers.Server) *loadWorld {
	t.Helper()
	w := &loadWorld{server: s, nativeDB: harness.Database(t, s), filledDB: harness.Database(t, s)}
	w.proxy = harness.StartWith(t, s.Addr, "ids: {segment: {start: 1000001}}", fmt.Sprintf(`{table: "%s.*", column: id, source: ids}`, w.filledDB))
	w.native = harness.NewLoader(t, s.Config(w.nativeDB), "")
	w.filled = harness.NewLoader(t, s.Config(w.filledDB), w.proxy.Addr("a"))
	return w
}

// loadTable is what cases load into. Explicit ids stay below the generated ones.
const loadTable = "CREATE TABLE t (id BIGINT PRIMARY KEY AUTO, a VARCHAR(200), u INT UNIQUE) AUTO_INCREMENT=1000001 DEFAULT CHARSET utf8mb4"

// create makes the table on both sides.
func (w *loadWorld) create(sql string) {
	w.native.T.Helper()
	w.native.Exec(strings.Replace(sql, " AUTO,", " AUTO_INCREMENT,", 1))
	w.filled.Exec(strings.Replace(strings.Replace(sql, " AUTO,", ",", 1), "AUTO_INCREMENT=1000001", "", 1))
}

// loadCase is one statement and its file.
type loadCase struct{ name, sql, file string }

const loadCSV = "LOAD DATA LOCAL INFILE 'f' INTO TABLE t FIELDS TERMINATED BY ',' "

var loadCases = []loadCase{
	{"defaults", "LOAD DATA LOCAL INFILE 'f' INTO TABLE t (a,u)", "x\t1\ny\t2\nz\t3\n"},
	{"no last line end", loadCSV + "(a,u)", "x,1\ny,2"},
	{"empty file", loadCSV + "(a,u)", ""},
	{"empty lines", loadCSV + "(a,u)", "\n\nx,1\n\n"},
	{"short lines", loadCSV + "(a,u)", "x\ny,2\n,\n"},
	{"long lines", loadCSV + "(a,u)", "x,1,more\ny,2,\"more\nz,3\",rest\\\nof\nw,4\n"},
	{"skipped first row", loadCSV + "(u,a)", "1,x\n1,y\n2,z\n"},
	{"duplicates", loadCSV + "(u,a)", "7,x\n7,y\n7,z\n"},
	{"IGNORE", "LOAD DATA LOCAL INFILE 'f' IGNORE INTO TABLE t FIELDS TERMINATED BY ',' (u,a)", "7,x\n7,y\n8,z\n"},
	{"REPLACE", "LOAD DATA LOCAL INFILE 'f' REPLACE INTO TABLE t FIELDS TERMINATED BY ',' (u,a)", "7,x\n7,y\n8,z\n"},
	{"warnings", loadCSV + "(u,a)", "7x,x\nabc,y\n8," + strings.Repeat("z", 300) + "\n"},
	{"error in the middle", "LOAD DATA LOCAL INFILE 'f' REPLACE INTO TABLE t FIELDS TERMINATED BY ',' (u,a)", "x7,x\n8,y\n"},
	{"words and comments", "load /* x */ data LOW_PRIORITY local INFILE 'f'\nINTO -- y\nTABLE `t` CHARACTER SET utf8mb4 COLUMNS TERMINATED BY x'2C' OPTIONALLY ENCLOSED BY 0x22 LINES TERMINATED BY \"\\n\" IGNORE 0 ROWS (`a`, u);", "x,1\n\"y,\ny\",2\n"},
	{"variables and SET", loadCSV + "(@v, u, @`w`) SET a = CONCAT(@v, '-', @w)", "x,1,p\ny,2,q\nz\n"},
	{"SET without list", loadCSV + "SET a = UPPER(a)", "\\N,x,1\n0,y,2\n"},
	{"IGNORE LINES", loadCSV + "IGNORE 2 LINES (a,u)", "head \\\n goes on\n\"quoted\nx,1\ny,2\n"},
	{"more IGNORE LINES than lines", loadCSV + "IGNORE 9 LINES (a,u)", "x,1\ny,2\n"},
	{"enclosed", loadCSV + `ENCLOSED BY '"' (a,u)`, "\"x\",1\n\"y,\"\"y\ny\",\"2\"\nz\"z,3\n\"open,4\n"},
	{"enclosed, without escapes", loadCSV + `ENCLOSED BY '"' ESCAPED BY '' (a,u)`, "\"x\\\",1\n\\N,2\nNULL,3\n\"NULL\",4\n"},
	{"enclosed by the escape", loadCSV + `ENCLOSED BY '"' ESCAPED BY '"' (a,u)`, "\"x\"\"y\",1\n\"a\nb\",2\nc\"d,3\n"},
	{"escapes", loadCSV + "(a,u)", "x\\,y,1\nx\\\ny,2\n\\N,3\n\\t\\0\\Z\\b,4\nend\\"},
	{"other escape", loadCSV + "ESCAPED BY '!' (a,u)", "x!,y,1\nx\\,2\n!N,3\n"},
	{"starting by", loadCSV + "LINES STARTING BY '>>' (a,u)", ">>x,1\nnoise>>y,2\nno line\n>z>>>,3\n>>"},
	{"starting and ending", loadCSV + "LINES STARTING BY 'ab' TERMINATED BY 'bc' (a,u)", "abx,1bcaaby,2bbcababz,3bc"},
	{"long terminators", "LOAD DATA LOCAL INFILE 'f' INTO TABLE t FIELDS TERMINATED BY '||' LINES TERMINATED BY '|#|\\n' (a,u)", "x|y||1|#|\nz|#|||2|#|\n"},
	{"CRLF", loadCSV + "LINES TERMINATED BY '\\r\\n' (a,u)", "x,1\r\ny\ny,2\r\n"},
	{"lines end as fields do", "LOAD DATA LOCAL INFILE 'f' INTO TABLE t FIELDS TERMINATED BY ',' LINES TERMINATED BY ',' (a,u)", "x,1,y,2,z,3"},
	{"lines do not end", loadCSV + "LINES TERMINATED BY '' (a,u)", "x,1,y,2,z,3"},
	{"rows skipped without line ends", loadCSV + "LINES TERMINATED BY '' IGNORE 1 LINES (a,u)", "x,1,y,2,z,3"},
	{"ids in the file", loadCSV + "", "0,x,1\n\\N,y,2\n900,z,3\n00,v,4\n 0,w,5\n0.4,p,6\n0.5,q,7\n-0,r,8\n1e-5,s,9\n-3,m,10\n"},
	{"ids with something behind", loadCSV + "(id,a,u)", "0 ,x,1\n0abc,y,2\n7x,z,3\n"},
	{"enclosed ids", loadCSV + `ENCLOSED BY '"' (id,a,u)`, "\"0\",\"x\",1\nNULL,y,2\n\"\\N\",z,3\n\"12\",w,4\n\"0 \",v,5\n"},
	{"id in the middle", loadCSV + "(a,id,u)", "x,0,1\nz,5,3\n"},
	{"id at the end", loadCSV + "(a,u,id)", "x,1,0\ny,2,\\N\nz,3,7\n"},
	{"ids in REPLACE", "LOAD DATA LOCAL INFILE 'f' REPLACE INTO TABLE t FIELDS TERMINATED BY ','", "0,x,1\n5,y,2\n5,z,3\n\\N,v,3\n"},
	{"text for an id, strict", "LOAD DATA LOCAL INFILE 'f' REPLACE INTO TABLE t FIELDS TERMINATED BY ','", "abc,x,1\n0,y,2\n"},
	{"short line before its id, strict", "LOAD DATA LOCAL INFILE 'f' REPLACE INTO TABLE t FIELDS TERMINATED BY ',' (a,u,id)", "x,1\n"},
	{"empty list", loadCSV + "()", "0,x,1\n"},
	{"bad separators", loadCSV + "ENCLOSED BY 'ab' (a,u)", "x,1\n"},
	{"unknown column", loadCSV + "(a,nosuch)", "x,1\n"},
	{"two statements", "SELECT 1; " + loadCSV + "(a,u); SELECT 2", "x,1\n"},
}

var quoted = regexp.MustCompile("`[a-z0-9_]+`\\.|test\\d+\\.")

func TestLoadData(t *testing.T) {
	t.Parallel()
	harness.EachServer(t, func(t *testing.T, s *servers.Server) {
		w := newLoadWorld(t, s)
		for _, c := range loadCases {
			w.compare(c)
		}
	})
}

// compare runs a case on both sides.
func (w *loadWorld) compare(c loadCase) {
	t := w.native.T
	t.Helper()
	w.create(loadTable)
	var shown [2]string
	for i, l := range []*harness.Loader{w.native, w.filled} {
		shown[i] = quoted.ReplaceAllString(l.Shown(c.sql, strings.NewReader(c.file)), "")
		shown[i] = generatedIDs.ReplaceAllString(shown[i], `"new"`)
		l.Exec("DROP TABLE t")
	}
	assert.True(t, shown[0] == shown[1], "%s: %s\n%q\nnative:\n%s\nthrough idproxy:\n%s", c.name, c.sql, c.file, shown[0], shown[1])
}

var generatedIDs = regexp.MustCompile(`"1\d{6}"`)

// loadRounds is how many random files each server is given; IDPROXY_LOAD_ROUNDS says another
// number.
func loadRounds(t *testing.T) int {
	if v := os.Getenv("IDPROXY_LOAD_ROUNDS"); v != "" {
		return assert.Of(strconv.Atoi(v)).Must(t)
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

func TestMain(m *testing.M) { harness.Main(m) }
