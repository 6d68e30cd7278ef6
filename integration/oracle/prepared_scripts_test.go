package oracle

import (
	"fmt"
	"math"
	"regexp"
	"slices"
	"strings"

	"github.com/go-mysql-org/go-mysql/mysql"

	"idproxy/integration/wireclient"
)

// boundIDs are ids of every type that a client may send: those that generate, and those that do
// not.
func boundIDs() []wireclient.Argument {
	ids := []wireclient.Argument{
		wireclient.Null(mysql.MYSQL_TYPE_LONGLONG), wireclient.Null(mysql.MYSQL_TYPE_VAR_STRING), wireclient.Null(mysql.MYSQL_TYPE_NULL),
		wireclient.Null(mysql.MYSQL_TYPE_DATE), wireclient.Null(mysql.MYSQL_TYPE_DOUBLE), wireclient.Null(mysql.MYSQL_TYPE_BLOB),
	}
	for _, kind := range wireclient.IntegerTypes {
		ids = append(ids, wireclient.Integer(kind, 0), wireclient.Unsigned(kind, 0))
	}
	for i, kind := range wireclient.IntegerTypes {
		n := int64(10 + 2*i)
		ids = append(ids, wireclient.Integer(kind, n), wireclient.Unsigned(kind, uint64(n+1)), wireclient.Integer(kind, -n))
	}
	ids = append(ids, wireclient.Unsigned(mysql.MYSQL_TYPE_TINY, 200), wireclient.Unsigned(mysql.MYSQL_TYPE_SHORT, 50_000), wireclient.Unsigned(mysql.MYSQL_TYPE_LONGLONG, 1<<63+5),
		wireclient.Unsigned(mysql.MYSQL_TYPE_LONGLONG, math.MaxUint64))
	for _, kind := range append(wireclient.TextTypes, mysql.MYSQL_TYPE_NEWDECIMAL, mysql.MYSQL_TYPE_LONG_BLOB) {
		ids = append(ids, wireclient.TextOf(kind, "0"), wireclient.TextOf(kind, "0.3"), wireclient.TextOf(kind, ""), wireclient.TextOf(kind, ownDigits(kind)))
	}
	for _, s := range []string{
		"00", "-0", "+0", " 0", "0 ", "0.0", "0.4", "0.5", "-0.4", "-0.5", "0e0", "1e-1", "41", "-42", "+43", " 44", "45 ", "046", "47.4", "47.5", "4.9e1",
		"0x10", "abc", "50x", "NULL", "DEFAULT", "51.6e0", "99999999999999999999", "\x00", "5\x00", "\t52", "53\n", ".4", ".6", "5.4e1",
	} {
		ids = append(ids, wireclient.Varchar(s), wireclient.InPieces(mysql.MYSQL_TYPE_VAR_STRING, s))
	}
	for _, s := range []string{"0.4", "0.5", "-0.4", "-0.5", "61", "62.4", "62.5", "-63", "abc", " 0"} {
		ids = append(ids, wireclient.TextOf(mysql.MYSQL_TYPE_NEWDECIMAL, s))
	}
	for _, f := range []float64{0, math.Copysign(0, -1), 0.4, -0.4, 0.5, -0.5, 0.6, 1.5, 2.5, 71, 72.4, -73, 1e19, math.NaN(), math.Inf(1)} {
		ids = append(ids, wireclient.Double(f))
	}
	for _, f := range []float32{0, 0.4, 0.5, 1.5, 75, 76.4, -77} {
		ids = append(ids, wireclient.Float(f))
	}
	return append(ids,
		wireclient.Moment(mysql.MYSQL_TYPE_DATE, "0002-02-03", 2, 0, 2, 3), wireclient.Moment(mysql.MYSQL_TYPE_DATE, "zero"),
		wireclient.Moment(mysql.MYSQL_TYPE_DATETIME, "0002-02-03 04:05:06", 2, 0, 2, 3, 4, 5, 6), wireclient.Moment(mysql.MYSQL_TYPE_DATETIME, "zero"),
		wireclient.Moment(mysql.MYSQL_TYPE_TIMESTAMP, "zero"), wireclient.Moment(mysql.MYSQL_TYPE_TIME, "zero"),
		wireclient.Moment(mysql.MYSQL_TYPE_TIME, "01:02:03", 0, 0, 0, 0, 0, 1, 2, 3))
}

// ownDigits is an id of its own for a type.
func ownDigits(kind byte) string {
	return string([]byte{'3', '0' + kind/100, '0' + kind/10%10, '0' + kind%10})
}

// boundIDScripts are sessions in which one of them comes twice, the second time without its type.
func boundIDScripts() []script {
	var all []script
	for _, mode := range []string{"SET sql_mode = DEFAULT", "SET sql_mode = ''", "SET sql_mode = 'NO_AUTO_VALUE_ON_ZERO,STRICT_ALL_TABLES'"} {
		for _, id := range boundIDs() {
			shown := id.String()
			if mode == "SET sql_mode = ''" && beyond.MatchString(shown) {
				continue // the greatest id would be stored, and natively there would be no more
			}
			first := executeStep("in", wireclient.Varchar("x"), id)
			again := executionStep("in", wireclient.Execution{Args: []wireclient.Argument{wireclient.Varchar("y"), id}, Untyped: true})
			if first.known = knownBound.MatchString(shown); !first.known {
				first.deviation, again.deviation = noteOfID, noteOfID
			}
			sc := script{name: fmt.Sprintf("bound id %s, %s", shown, mode), steps: []step{
				{sql: mode},
				prepareStep("in", "INSERT INTO t (a,id) VALUES (?,?)"), prepareStep("last", "SELECT LAST_INSERT_ID()"),
				first, executeStep("last"),
				{sql: "DELETE FROM t WHERE a = 'x'"},
				again, executeStep("last"),
			}}
			if timeTypes.MatchString(shown) {
				sc.steps = append(sc.steps[:3], first.deviating(notYet("id of a date or time type")))
			}
			all = append(all, sc)
		}
	}
	return all
}

// timeTypes are ids that are refused.
var timeTypes = regexp.MustCompile(`^(DATE|DATETIME|TIME|type 7) [^(]`)

// beyond are ids that no column holds.
var beyond = regexp.MustCompile(`\d{19}|1e\+19|Inf|NaN`)

// knownBound are ids that the proxy is known to get wrong: no insert id is told of what is no
// number, or begins like one.
var knownBound = regexp.MustCompile(`NaN|50x|0x10|5\\x00`)

// noteOfID is warningOfID where it applies: the id generates.
var noteOfID = func() *deviation {
	d := warningOfID()
	d.when = func(native []wireclient.Facet) bool {
		generated := slices.ContainsFunc(native, func(f wireclient.Facet) bool {
			return f.Name == "result 0: insert id" && strings.HasPrefix(f.Value, "t{")
		})
		return generated && !slices.Contains(native, wireclient.Facet{Name: "result 0: warnings", Value: "0"})
	}
	return d
}()
