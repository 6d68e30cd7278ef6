package load

import (
	"regexp"
	"strings"
	"testing"

	"idproxy/integration/assert"
	"idproxy/integration/harness"
	"idproxy/integration/servers"
)

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
