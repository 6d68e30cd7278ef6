package protocol

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/go-mysql-org/go-mysql/mysql"

	"idproxy/integration/assert"
	"idproxy/proxy/wire"
	"idproxy/rewriter"
	"idproxy/rule"
)

// A session keeps the texts of its statements up to a bound, and counts those that it has.
func TestOwnTextsAreBounded(t *testing.T) {
	var c Conn
	made := func(size int) *Stmt {
		e := &Stmt{Own: newOwnText([]byte(strings.Repeat("x", size)), rewriter.Head{}, &c.state)}
		c.Prepared.keepText(e)
		return e
	}
	e := made(maxOwnTexts + 1)
	assert.True(t, !e.Own.Kept && c.Prepared.texts.Load() == 0, "one that is too large: kept %t, %d bytes", e.Own.Kept, c.Prepared.texts.Load())
	first, second, third := made(maxOwnTexts/2), made(maxOwnTexts/2), made(1)
	assert.True(t, first.Own.Kept && second.Own.Kept && !third.Own.Kept && c.Prepared.texts.Load() == maxOwnTexts,
		"kept %t %t %t, %d bytes", first.Own.Kept, second.Own.Kept, third.Own.Kept, c.Prepared.texts.Load())
	c.Prepared.dropText(third)
	c.Prepared.dropText(first)
	e = made(1)
	assert.True(t, e.Own.Kept && c.Prepared.texts.Load() == maxOwnTexts/2+1, "when another was closed: kept %t, %d bytes", e.Own.Kept, c.Prepared.texts.Load())
}

// FuzzTypes: the types that are kept of an execution are those that it is read with, also when it
// arrives in pieces.
func FuzzTypes(f *testing.F) {
	f.Add([]byte("\x17\x01\x00\x00\x00\x00\x01\x00\x00\x00\x00\x01\xfd\x00\x01x"), byte(1), false)
	f.Add([]byte("\x17\x01\x00\x00\x00\x08\x01\x00\x00\x00\x02\x00\x01\x08\x00\x00\x03\x00\x01ab"), byte(1), true)
	f.Add([]byte("\xfa\x01\x00\x00\x00\x80\x00\x08\x00\xfd\x00\x00\x05\x00\x00\x00\x00\x00\x00\x00\x01"), byte(2), false)
	f.Fuzz(func(t *testing.T, payload []byte, parameters byte, attributes bool) {
		if len(payload) == 0 {
			return
		}
		caps, n := uint64(0), int(parameters)
		if attributes {
			caps = uint64(mysql.CLIENT_QUERY_ATTRIBUTES)
		}
		e := &Stmt{Params: n}
		whole := e.noteTypes(payload, caps)
		var one wire.Execute
		var many wire.Bulk
		var want []uint16
		var err error
		if payload[0] == ComBulkExecute {
			err = many.Parse(payload, n, nil)
			want = many.Types
		} else if err = one.Parse(payload, caps, wire.Bound{Parameters: n}); err == nil && one.Typed {
			for _, p := range one.Parameters[:n] {
				want = append(want, p.Type)
			}
		}
		assert.True(t, err != nil || whole && slices.Equal(e.Types, want), "%x: types %v, %t, want %v", payload, e.Types, whole, want)
		for cut := range payload {
			if before := (&Stmt{Params: n}); cut > 0 && before.noteTypes(bytes.Clone(payload[:cut]), caps) && whole && !slices.Equal(before.Types, e.Types) {
				t.Errorf("%x: types %v of %d bytes, %v of all", payload, before.Types, cut, e.Types)
			}
		}
	})
}

// What is kept of such texts is bounded, and what is not kept is no reason to refuse while the
// rules are the same.
func TestPassedTextsAreBounded(t *testing.T) {
	var p passedNames
	assert.True(t, !p.MayInsert(rule.NewList([]rule.Rule{{Schema: "shop", Table: "*", Column: "id", Source: "s"}})), "a rule for any table concerns texts that there are not")
	rules := func() *rule.List {
		return rule.NewList([]rule.Rule{{Schema: "shop", Table: "orders", Column: "id", Source: "s"}})
	}
	same := rules()
	for n := range 1000 {
		p.Add([]byte("PREPARE s FROM 'SELECT "+strings.Repeat("x", n)+"'"), same)
	}
	assert.True(t, len(p.texts) <= maxPassed, "%d bytes are kept", len(p.texts))
	assert.True(t, !p.MayInsert(same) && p.MayInsert(rules()), "under the same rules: %t, after a reload: %t; want false, true", p.MayInsert(same), p.MayInsert(rules()))
}
