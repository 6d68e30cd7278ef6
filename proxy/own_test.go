package proxy

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/go-mysql-org/go-mysql/mysql"

	"idproxy/proxy/wire"
	"idproxy/rewriter"
)

func TestWithQuotes(t *testing.T) {
	for _, tt := range []struct{ modes, ansi, backslash, both string }{
		{"", "ANSI_QUOTES", "NO_BACKSLASH_ESCAPES", "ANSI_QUOTES,NO_BACKSLASH_ESCAPES"},
		{"STRICT_ALL_TABLES,NO_BACKSLASH_ESCAPES", "STRICT_ALL_TABLES,ANSI_QUOTES", "STRICT_ALL_TABLES,NO_BACKSLASH_ESCAPES", "STRICT_ALL_TABLES,ANSI_QUOTES,NO_BACKSLASH_ESCAPES"},
		{
			"REAL_AS_FLOAT,PIPES_AS_CONCAT,ANSI_QUOTES,IGNORE_SPACE,ANSI", "REAL_AS_FLOAT,PIPES_AS_CONCAT,IGNORE_SPACE,ANSI,ANSI_QUOTES",
			"REAL_AS_FLOAT,PIPES_AS_CONCAT,IGNORE_SPACE,NO_BACKSLASH_ESCAPES", "REAL_AS_FLOAT,PIPES_AS_CONCAT,IGNORE_SPACE,ANSI,ANSI_QUOTES,NO_BACKSLASH_ESCAPES",
		},
	} {
		for want, mode := range map[string]rewriter.Mode{tt.ansi: {ANSIQuotes: true}, tt.backslash: {NoBackslashEscapes: true}, tt.both: {ANSIQuotes: true, NoBackslashEscapes: true}} {
			if got := withQuotes(tt.modes, mode); got != want {
				t.Errorf("%q with %+v: %q, want %q", tt.modes, mode, got, want)
			}
		}
	}
}

// A session keeps the texts of its statements up to a bound, and counts those that it has.
func TestOwnTextsAreBounded(t *testing.T) {
	var c conversation
	made := func(size int) *prepared {
		e := &prepared{own: newOwnText([]byte(strings.Repeat("x", size)), rewriter.Head{}, &c.state)}
		c.prepared.keepText(e)
		return e
	}
	if e := made(maxOwnTexts + 1); e.own.kept || c.prepared.texts != 0 {
		t.Errorf("one that is too large: kept %t, %d bytes", e.own.kept, c.prepared.texts)
	}
	first, second, third := made(maxOwnTexts/2), made(maxOwnTexts/2), made(1)
	if !first.own.kept || !second.own.kept || third.own.kept || c.prepared.texts != maxOwnTexts {
		t.Errorf("kept %t %t %t, %d bytes", first.own.kept, second.own.kept, third.own.kept, c.prepared.texts)
	}
	c.prepared.dropText(third)
	c.prepared.dropText(first)
	if e := made(1); !e.own.kept || c.prepared.texts != maxOwnTexts/2+1 {
		t.Errorf("when another was closed: kept %t, %d bytes", e.own.kept, c.prepared.texts)
	}
}

// FuzzTypes: the types that are kept of an execution are those that it is read with, also when it arrives in pieces.
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
		e := &prepared{params: n}
		whole := e.noteTypes(payload, caps)
		var one wire.Execute
		var many wire.Bulk
		var want []uint16
		var err error
		if payload[0] == comBulkExecute {
			err = many.Parse(payload, n, nil)
			want = many.Types
		} else if err = one.Parse(payload, caps, wire.Bound{Parameters: n}); err == nil && one.Typed {
			for _, p := range one.Parameters[:n] {
				want = append(want, p.Type)
			}
		}
		if err == nil && (!whole || !slices.Equal(e.types, want)) {
			t.Errorf("%x: types %v, %t, want %v", payload, e.types, whole, want)
		}
		for cut := range payload {
			if before := (&prepared{params: n}); cut > 0 && before.noteTypes(bytes.Clone(payload[:cut]), caps) && whole && !slices.Equal(before.types, e.types) {
				t.Errorf("%x: types %v of %d bytes, %v of all", payload, before.types, cut, e.types)
			}
		}
	})
}
