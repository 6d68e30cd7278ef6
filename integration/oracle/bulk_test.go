package oracle

import (
	"fmt"
	"strings"
	"testing"

	"github.com/go-mysql-org/go-mysql/mysql"

	"idproxy/integration/harness"
	"idproxy/integration/wireclient"
)

// bulkStep executes rows at once; those of an untyped one have the types of the one before.
func bulkStep(name string, typed bool, rows ...[]wireclient.Argument) step {
	return does(fmt.Sprintf("bulk %s %s, typed: %t", name, rows, typed), func(s *wireclient.Session) ([]wireclient.Reply, error) { return s.Bulk(name, typed, rows) })
}

// indicated is an argument that only has an indicator.
func indicated(kind, indicator byte) wireclient.Argument {
	return wireclient.Argument{Kind: kind, Indicator: indicator}
}

const (
	byDefault = 2
	ignored   = 3
)

// bulkIDs are ids of the rows of a bulk, all of one type.
func bulkIDs(kind byte, number func(int) wireclient.Argument) [][]wireclient.Argument {
	none, standard, skipped := indicated(kind, 1), indicated(kind, byDefault), indicated(kind, ignored)
	var all [][]wireclient.Argument
	for i := range 2 {
		n := func(k int) wireclient.Argument { return number(1000*i + k) }
		all = append(all,
			[]wireclient.Argument{none}, []wireclient.Argument{n(0)}, []wireclient.Argument{n(11)}, []wireclient.Argument{standard}, []wireclient.Argument{none, none, none}, []wireclient.Argument{n(0), n(0)},
			[]wireclient.Argument{n(21), n(22), n(23)}, []wireclient.Argument{none, n(31), n(0)}, []wireclient.Argument{n(41), none}, []wireclient.Argument{standard, n(51), standard, none},
			[]wireclient.Argument{skipped}, []wireclient.Argument{skipped, n(61)}, []wireclient.Argument{none, n(71), n(72)},
		)
	}
	return all
}

// bulkForms are statements that take rows in bulk, whose parameters are a, u and maybe the id; § is
// the table.
var bulkForms = []string{
	"INSERT INTO § (a,u) VALUES (?,?)", "INSERT INTO § (a,u,id) VALUES (?,?,?)", "INSERT INTO § (a,u,id,parent) VALUES (?,?,?,7)",
	"REPLACE INTO § (a,u) VALUES (?,?)", "REPLACE INTO § (a,u,id) VALUES (?,?,?)",
	"INSERT IGNORE INTO § (a,u) VALUES (?,?)", "INSERT IGNORE INTO § (a,u,id) VALUES (?,?,?)",
	"INSERT INTO § (a,u) VALUES (?,?) ON DUPLICATE KEY UPDATE a=VALUES(a)", "INSERT INTO § (a,u,id) VALUES (?,?,?) ON DUPLICATE KEY UPDATE n=9",
	"INSERT INTO § (a,u) VALUES (?,?) RETURNING id, a", "INSERT INTO § (a,u,id) VALUES (?,?,?) RETURNING a", "INSERT INTO § (a,u,id) VALUES (?,?,NULL)",
	"INSERT INTO § (a,u,parent) VALUES (?,?,LAST_INSERT_ID())", "INSERT INTO § SET a=?, u=?",
}

// bulkScripts are sessions of one form each, in which every bulk is followed by what reads the last
// insert id.
func bulkScripts() []script {
	var all []script
	ints := func(n int) wireclient.Argument { return wireclient.Long(int64(n)) }
	texts := func(n int) wireclient.Argument { return wireclient.Varchar(fmt.Sprint(n)) }
	for i, form := range bulkForms {
		f := newFormer(formMode{name: "bulk"}, form)
		for j, ids := range [][][]wireclient.Argument{bulkIDs(mysql.MYSQL_TYPE_LONGLONG, ints), bulkIDs(mysql.MYSQL_TYPE_VAR_STRING, texts)} {
			sc := script{name: fmt.Sprintf("bulk %s %d", form, j), lacks: "MySQL", caps: wireclient.BulkOperations}
			f.serial = 100 * i
			sql := strings.ReplaceAll(form, "§", tableNames[(i+j)%3])
			sc.steps = append(sc.steps, prepareStep("last", "SELECT LAST_INSERT_ID()"), prepareStep("p", sql))
			for k, rows := range ids {
				moved := failedBatch(fmt.Sprintf("tail{seed%d}", k))
				seed := step{sql: fmt.Sprintf("INSERT INTO tail (a) VALUES ('seed%d')", k)}
				sc.steps = append(sc.steps, seed, f.bulk(sql, k, rows), executeStep("last").deviating(moved))
				if k%3 == 1 {
					child := step{sql: fmt.Sprintf("INSERT INTO t (a,parent) VALUES ('child%d', LAST_INSERT_ID())", k)}
					sc.steps = append(sc.steps, child.deviating(moved))
				}
			}
			all = append(all, sc)
		}
	}
	return all
}

// bulk is a bulk of rows with these ids, the k-th of its statement. Some collide with a row that is
// there.
func (f *former) bulk(sql string, k int, ids []wireclient.Argument) step {
	var rows [][]wireclient.Argument
	fresh := 0
	for i, id := range ids {
		f.serial++
		u := wireclient.Long(int64(2000 + f.serial))
		if k%4 == 3 && i == len(ids)/2 {
			u = wireclient.Long(int64(1 + k%fixedRows))
		} else {
			fresh++
		}
		row := []wireclient.Argument{wireclient.Varchar(fmt.Sprint("b", f.serial)), u}
		if strings.Count(sql, "?") == 3 {
			row = append(row, id)
		}
		rows = append(rows, row)
	}
	st := bulkStep("p", k%2 == 0, rows...)
	st.sql = sql
	st.gaps = k%4 == 3 && fresh > 1
	return st
}

// TestOracleBulk is MariaDB's COM_STMT_BULK_EXECUTE.
func TestOracleBulk(t *testing.T) {
	t.Parallel()
	server := harness.MariaDB(t)
	for _, tr := range []trigger{noTrigger, beforeTrigger, afterTrigger} {
		t.Run(tr.String(), func(t *testing.T) {
			t.Parallel()
			o := newOracle(t, server, tr)
			o.run(t, o.share(bulkScripts())...)
			o.tell(t)
		})
	}
}
