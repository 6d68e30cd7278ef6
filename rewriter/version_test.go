package rewriter

import (
	"fmt"
	"testing"

	"idproxy/integration/assert"
)

// Versions of comments were tried on both servers: MariaDB 10.11.19 and MySQL 9.7.4.
func TestVersionComments(t *testing.T) {
	maria, mysql := Mode{MariaDB: true, Version: 101119}, Mode{Version: 90704}
	for _, tt := range []struct {
		comment      string // /*..*/ in the text below
		maria, mysql bool   // the inside runs
	}{
		{"/*! #*/", true, true},
		{"/*!50000 #*/", true, true},
		{"/*!50000#*/", true, true},
		{"/*!50700 #*/", false, true},
		{"/*!90704 #*/", false, true},
		{"/*!90705 #*/", false, false},
		{"/*!99999 #*/", false, false},
		{"/*!090704 #*/", false, true},
		{"/*!050000 #*/", true, true},
		{"/*!101119 #*/", true, false},
		{"/*!101120 #*/", false, false},
		{"/*!999999#*/", false, false},
		{"/*M!50700 #*/", true, false},
		{"/*M!101119 #*/", true, false},
		{"/*M! #*/", true, false},
		{"/*!50000 /*!99999 ' */ #/* ' */ */", true, true},
		{"/*!99999 ' /* ' */ #*/", false, false},
	} {
		in := "INSERT INTO t (a " + replaceHash(tt.comment, ",b") + ") VALUES (1 " + replaceHash(tt.comment, ",2") + ")"
		without := "INSERT INTO t (a " + replaceHash(tt.comment, ",b") + ",`id`) VALUES (1 " + replaceHash(tt.comment, ",2") + ",LAST_INSERT_ID(77))"
		for m, runs := range map[Mode]bool{maria: tt.maria, mysql: tt.mysql} {
			assert.Equal(t, fmt.Sprintf("%s on %d", in, m.Version), rewritten(in, m, testRule, nil), without)
			// With the second value alone the statement is one that the server refuses if it takes
			// it for code.
			wrong := "INSERT INTO t (a) VALUES (1 " + replaceHash(tt.comment, ",2") + ")"
			assert.Equal(t, fmt.Sprintf("%s on %d: refused", wrong, m.Version), rewritten(wrong, m, testRule, nil) == "error: "+ErrRefusedByServer.Error(), runs)
		}
	}
	for _, in := range []string{"INSERT /*!090704,x*/ INTO t(a) VALUES (1)", "INSERT /*!0501000 x*/ INTO t(a) VALUES (1)"} {
		assert.Equal(t, in, rewritten(in, mysql, testRule, nil), "error: version comment")
	}
	assert.Equal(t, "six digits on an old server", rewritten("INSERT /*!050000 INTO*/ t(a) VALUES (1)", Mode{Version: 50744}, testRule, nil), "error: version comment")
}

func replaceHash(comment, inside string) string {
	for i := range comment {
		if comment[i] == '#' {
			return comment[:i] + inside + comment[i+1:]
		}
	}
	return comment
}

func TestEditsAroundVersionComments(t *testing.T) {
	m := Mode{Version: 90704}
	for _, tt := range []struct{ in, want string }{
		{"INSERT /*!50000 INTO t (a*/) VALUES (1)", "INSERT /*!50000 INTO t (a*/,`id`) VALUES (1,LAST_INSERT_ID(77))"},
		{"INSERT INTO t (a) VALUES (1 /*!50000 */*2)", "INSERT INTO t (a,`id`) VALUES (1 /*!50000 */*2,LAST_INSERT_ID(77))"},
		{"INSERT INTO t (a) VALUES (1), /*!50000 (2) */", "INSERT INTO t (a,`id`) VALUES (1,77), /*!50000 (2,LAST_INSERT_ID(77)+1) */"},
		{"INSERT INTO t (id) VALUES (/*!50000 NULL */)", "INSERT INTO t (id) VALUES (/*!50000 LAST_INSERT_ID(77) */)"},
		{"INSERT INTO t (/*!50000 id, */ a) VALUES (/*!50000 NULL , */ id)", "INSERT INTO t (/*!50000  */ a,`id`) VALUES (/*!50000   */ id,LAST_INSERT_ID(77))"},
		{"INSERT INTO t SET a=1 /*!50000 , b=2 */", "INSERT INTO t SET a=1 /*!50000 , b=2,`id`=LAST_INSERT_ID(77) */"},
		{"INSERT INTO t(a) VALUES (1) /*!50000 ON DUPLICATE KEY UPDATE a=2 */", "INSERT INTO t(a,`id`) VALUES (1,77) /*!50000 ON DUPLICATE KEY UPDATE a=2" + updated + " */"},
		{"INSERT INTO t(a) VALUES (1) /*!99999 ON DUPLICATE KEY UPDATE a=2 */", "INSERT INTO t(a,`id`) VALUES (1,LAST_INSERT_ID(77)) /*!99999 ON DUPLICATE KEY UPDATE a=2 */"},
		// An expression is asked for, and replaced, as a whole.
		{"INSERT INTO t (id) VALUES (/*!50000 @x */)", "error: " + ErrNeedValues.Error()},
		{"INSERT INTO t (id) VALUES (1 /*!99999 ) */ +1)", "error: " + ErrNeedValues.Error()},
		{"INSERT INTO t (id) VALUES (1 /*!50000 +1 */)", "error: version comment"},
		{"INSERT INTO t (id) VALUES (/*!50000 1 */ +1)", "error: version comment"},
		{"INSERT INTO t (id) VALUES (DEFAULT /*!50000 (id) */)", "error: expression for column id"},
		{"INSERT INTO t (t. /*!50000 id */, a) VALUES (NULL, id)", "error: version comment"},
		{"INSERT INTO t SET id /*!50000 = NULL */ , a=id", "error: version comment"},
		{"INSERT INTO t SET /*!50000 id=NULL, */ a=id", "INSERT INTO t SET /*!50000  */ a=id,`id`=LAST_INSERT_ID(77)"},
	} {
		assert.Equal(t, tt.in, rewritten(tt.in, m, testRule, nil), tt.want)
	}
}

// Where the version is known, heads and statements are read as that server does.
func TestHeadsOfKnownVersions(t *testing.T) {
	maria, mysql := Mode{MariaDB: true, Version: 101119, MultiStatements: true}, Mode{Version: 90704, MultiStatements: true}
	for _, tt := range []struct{ in, unknown, maria, mysql string }{
		{"/*!99999 SELECT */ INSERT INTO t VALUES (1)", "insert .t", "insert .t", "insert .t"},
		{"/*!99999 INSERT INTO u */ INSERT INTO t VALUES (1)", "insert", "insert .t", "insert .t"},
		{"/*!80000 INSERT INTO u */ SELECT 1", "insert .u", "other", "insert .u"},
		{"/*!80000 SELECT */ INSERT INTO t VALUES (1)", "insert .t", "insert .t", "other"},
		{"/*M!100000 INSERT INTO u */", "other", "insert .u", "other"},
	} {
		for m, want := range map[Mode]string{{}: tt.unknown, maria: tt.maria, mysql: tt.mysql} {
			assert.Equal(t, fmt.Sprintf("%s on %d", tt.in, m.Version), show(headOf(tt.in, m)), want)
		}
	}
	text := []byte("SELECT 1 /*!80000 ; ' */ ; SELECT 2")
	for m, want := range map[Mode][]Span{
		{MultiStatements: true}: {{Start: 0, End: 18, Doubt: true}, {Start: 19, End: 35, Doubt: true}},
		maria:                   {{Start: 0, End: 25}, {Start: 26, End: 35}},
		mysql:                   {{Start: 0, End: 18}, {Start: 19, End: 35, Doubt: true}},
	} {
		got := Split(nil, text, m)
		assert.True(t, len(got) == len(want) && got[0] == want[0] && got[1] == want[1], "on %d: %v, want %v", m.Version, got, want)
	}
}
