package catalog

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"idproxy/integration/assert"
	"idproxy/rule"
)

func TestTablesCache(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tb := New()
		key := tb.AppendKey(nil, []byte("Shop"), []byte("Orders"))
		assert.True(t, string(key) == "Shop\x00Orders", "key %q", key)
		tb.Put(string(key), &Table{Name: "x", At: time.Now()})
		time.Sleep(maxAge)
		assert.True(t, tb.Get(key) != nil, "facts forgotten too early")
		time.Sleep(time.Second)
		assert.True(t, tb.Get(key) == nil, "facts believed for too long")
		tb.Put(string(key), &Table{At: time.Now()})
		f, c, d := &Table{Name: "x"}, &rule.Rule{Column: "c"}, &rule.Rule{Column: "d"}
		tb.Admit(AdmissionOf(f, c))
		tb.Forget()
		assert.True(t, tb.Get(key) == nil && tb.IsAdmitted(f, c) && tb.IsAdmitted(f, c) && !tb.IsAdmitted(f, d), "forget: facts must go, admitted columns stay")
		tb.SetFold(true)
		key = tb.AppendKey([]byte("x"), []byte("Shop"), []byte("Orders"))
		assert.True(t, string(key) == "xshop\x00orders", "folded key %q", key)
		for i := range maxTables + 1 {
			tb.Put(string(binary.AppendUvarint(nil, uint64(i))), &Table{At: time.Now()})
		}
		assert.LessOrEqual(t, "facts kept", len(tb.tables), maxTables)
	})
}

// What the server says of a table while DDL is on its way is not kept.
func TestFactsOfAnOlderTableAreDropped(t *testing.T) {
	tables := New()
	asked := tables.Count()
	tables.Put("a", testFacts(asked))
	assert.True(t, tables.Get([]byte("a")) != nil, "facts are not kept")
	tables.Forget()
	tables.Put("a", testFacts(asked))
	assert.True(t, tables.Get([]byte("a")) == nil, "facts asked for before DDL are kept behind it")
}

func testFacts(changes uint64) *Table { return &Table{At: time.Now(), Changes: changes} }

// TestFailures: a column is remembered that could not be compared, until it can, until no rule names
// it, or for an hour.
func TestFailures(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tables, ids := New(), &rule.Rule{Schema: "shop", Table: "*", Column: "id", Source: "ids"}
		of := func(table string) Admission { return AdmissionOf(&Table{Name: "shop." + table}, ids) }
		want := func(what string, columns int, names ...string) {
			t.Helper()
			begun, failed := tables.Begun()
			var got []string
			for _, f := range failed {
				got = append(got, f.Table)
			}
			assert.True(t, begun == columns && slices.Equal(got, names), "%s: %d begun and %q failed, want %d and %q", what, begun, got, columns, names)
		}
		want("new", 0)
		for _, name := range []string{"b", "a"} {
			tables.Fail(of(name), errors.New("denied"))
		}
		want("two failed", 0, "shop.a", "shop.b")
		tables.Admit(of("a"))
		want("one began", 1, "shop.b")
		time.Sleep(failureAge)
		want("an hour later", 1)
		tables.Fail(of("b"), errors.New("denied"))
		tables.Withdraw(rule.NewList([]rule.Rule{{Schema: "shop", Table: "a", Column: "id", Source: "ids"}}))
		want("without its rule", 1)
		tables.Fail(of("a"), errors.New("denied"))
		tables.Pardon()
		want("pardoned", 1)
		for i := range maxFailures + 1 {
			tables.Fail(of(fmt.Sprint(i)), errors.New("denied"))
		}
		_, failed := tables.Begun()
		assert.True(t, len(failed) <= maxFailures, "%d are remembered", len(failed))
	})
}
