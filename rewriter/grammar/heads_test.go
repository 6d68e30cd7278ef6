package grammar

import (
	"bytes"
	"testing"

	"github.com/pingcap/tidb/pkg/parser"
	"github.com/pingcap/tidb/pkg/parser/ast"

	"idproxy/integration/assert"
	"idproxy/rewriter"
)

// texts are seeds of FuzzTexts: what sessions send beside INSERTs.
var texts = []string{
	"SELECT 1; INSERT INTO t (a) VALUES (';'); # x", "USE `d`; REPLACE INTO t VALUES (1)", "SET NAMES utf8mb4; SET sql_mode='ANSI_QUOTES', @x=1",
	"PREPARE s FROM 'INSERT INTO t VALUES (1)'; EXECUTE s USING @a; DEALLOCATE PREPARE s", "CALL p(1,'x')", "CREATE TEMPORARY TABLE IF NOT EXISTS t (a int)",
	"DROP TEMPORARY TABLE d.t; CREATE TABLE u LIKE t", "LOAD DATA LOCAL INFILE 'x' REPLACE INTO TABLE t FIELDS TERMINATED BY ','", "ALTER TABLE t ADD b INT, RENAME TO u",
	"BEGIN; COMMIT", "START TRANSACTION READ ONLY; ROLLBACK", "EXPLAIN ANALYZE SELECT 1", "EXPLAIN INSERT INTO t VALUES (1)", "((SELECT 1)) UNION (SELECT 2)",
	"WITH c AS (SELECT 1) SELECT * FROM c", "UPDATE t SET a=1 WHERE b='INSERT'", "DELETE FROM t WHERE a IN (SELECT `insert` FROM u)", "SHOW WARNINGS; SHOW CREATE TABLE t",
	"TRUNCATE t; RENAME TABLE a TO b", "CREATE OR REPLACE VIEW v AS SELECT 1", "SELECT 'a\\';INSERT INTO t VALUES (1)', \"b\"", "SELECT 1 /* ; */ -- ;\n ; # ;",
	"SET PASSWORD = 'x'; SET ROLE NONE; SET TRANSACTION READ ONLY", "DO SLEEP(0); SELECT REPLACE('a','b','c'), INSERT('a',1,1,'b')", "CREATE DATABASE d; DROP DATABASE d",
	"LOCK TABLES t WRITE; UNLOCK TABLES", "KILL 5", "GRANT SELECT ON *.* TO u", "ANALYZE TABLE t", "SELECT @a:=1;", ";;SELECT 1;;", "TABLE t; VALUES ROW(1)",
}

// FuzzTexts: what TiDB's parser takes for several statements Split cuts in the same places, and
// each is of the same kind to both.
func FuzzTexts(f *testing.F) {
	for i, text := range append(texts, corpus...) {
		f.Add([]byte(text), uint16(i&3))
	}
	f.Fuzz(func(t *testing.T, text []byte, n uint16) {
		m := sessionOf(n & 15).mode
		m.MultiStatements = true
		if s := (&rewriter.Statement{Text: text, Mode: m}); !plainText(s) || slips.Match(text) || bytes.IndexByte(text, 0) >= 0 {
			return
		}
		stmts := statements(string(text), m)
		if stmts == nil {
			return
		}
		var heads []rewriter.Head
		for _, span := range rewriter.Split(nil, text, m) {
			one := text[span.Start:span.End]
			h, _ := rewriter.ReadHead(one, m)
			if span.Doubt || h.Kind == rewriter.Compound {
				return
			}
			if len(statements(string(one), m)) > 0 || h.Kind != rewriter.Other { // no empty one
				heads = append(heads, h)
			}
		}
		assert.MustTrue(t, len(heads) == len(stmts), "%q: TiDB reads %d statements, Split %d", text, len(stmts), len(heads))
		for i, stmt := range stmts {
			want := headOf(stmt)
			assert.MustTrue(t, sameHead(heads[i], want), "%q: statement %d is %+v to TiDB, %+v to ReadHead", text, i, want, heads[i])
		}
	})
}

// statements returns what TiDB reads in text; nil when it cannot.
func statements(text string, m rewriter.Mode) (stmts []ast.StmtNode) {
	defer func() {
		if recover() != nil {
			stmts = nil
		}
	}()
	p := parser.New()
	p.SetSQLMode(sqlMode(m))
	stmts, _, err := p.Parse(text, "", "")
	if err != nil {
		return nil
	}
	return stmts
}

func headOf(stmt ast.StmtNode) (h rewriter.Head) {
	named := func(kind rewriter.Kind, t *ast.TableName) rewriter.Head {
		return rewriter.Head{Kind: kind, Target: rewriter.Name{Schema: []byte(t.Schema.O), Table: []byte(t.Name.O)}}
	}
	switch s := stmt.(type) {
	case *ast.InsertStmt:
		kind := rewriter.Insert
		if s.IsReplace {
			kind = rewriter.Replace
		}
		return named(kind, tableName(s))
	case *ast.LoadDataStmt:
		return named(rewriter.Load, s.Table)
	case *ast.UseStmt:
		return rewriter.Head{Kind: rewriter.Use, Target: rewriter.Name{Schema: []byte(s.DBName)}}
	case *ast.CreateTableStmt:
		h = named(rewriter.DDL, s.Table)
		h.Create, h.Temporary = true, s.TemporaryKeyword == ast.TemporaryLocal
	case *ast.DropTableStmt:
		if s.IsView {
			return rewriter.Head{Kind: rewriter.DDL, Drop: true}
		}
		h = named(rewriter.DDL, s.Tables[0])
		h.Drop, h.Temporary = true, s.TemporaryKeyword == ast.TemporaryLocal
	case *ast.SetStmt, *ast.SetPwdStmt, *ast.SetRoleStmt, *ast.SetDefaultRoleStmt:
		h.Kind = rewriter.Set
	case *ast.PrepareStmt:
		h.Kind = rewriter.Prepare
	case *ast.DeallocateStmt:
		h.Kind = rewriter.Deallocate
	case *ast.ExecuteStmt:
		h.Kind = rewriter.Execute
	case *ast.CallStmt:
		h.Kind = rewriter.Call
	}
	return h
}

// sameHead compares what a session must know of a statement. What TiDB has no kind for is none that
// gets ids. A name that ReadHead does not have could not be read, and stands for any.
func sameHead(got, want rewriter.Head) bool {
	switch want.Kind {
	case rewriter.Other:
		return got.Kind == rewriter.Other || got.Kind == rewriter.DDL || got.Kind == rewriter.Set
	case rewriter.DDL:
		if got.Create != want.Create || got.Drop != want.Drop || got.Temporary != want.Temporary {
			return false
		}
	}
	if got.Kind == want.Kind && len(got.Target.Table)+len(got.Target.Schema) == 0 {
		return true
	}
	return got.Kind == want.Kind && bytes.Equal(got.Target.Schema, want.Target.Schema) && bytes.Equal(got.Target.Table, want.Target.Table)
}
