package infile

import (
	"bytes"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"idproxy/integration/assert"
)

// fuzzed makes a Format of a few bytes.
func fuzzed(b []byte) *Format {
	at := func(i int) byte {
		if i < len(b) {
			return b[i]
		}
		return 0
	}
	of := func(i int, list ...string) []byte { return []byte(list[int(at(i))%len(list)]) }
	one := func(i int, list string) int {
		if k := int(at(i)) % (len(list) + 1); k > 0 {
			return int(list[k-1])
		}
		return None
	}
	f := &Format{
		FieldTerm: of(0, ",", "\t", "||", "ab", ",;,"), LineTerm: of(1, "\n", "\r\n", "", ",", "aab", "|\n"), LineStart: of(2, "", ">", "aba"),
		Enclosed: one(3, `"'x`), Escape: one(4, `\!"x`), Skip: uint64(at(5) % 3), Fields: 1 + int(at(6)%3), Charset: Charset(at(7) % 12),
		MariaDB: at(8)&1 == 0, Strict: at(8)&2 != 0, KeepZero: at(8)&4 != 0,
	}
	if at(8)&8 != 0 {
		f.Bytes = []bool{true, false, true}[:f.Fields]
	}
	field := int(at(9)%4) - 1
	if field >= f.Fields {
		field = Absent
	}
	f.Columns = []Column{{Field: field, Text: at(9)&16 != 0, Unsigned: at(9)&32 != 0}}
	return f
}

// Whatever the file is, what comes out is the file with ids in it, however it arrives; and read
// again it needs none.
func FuzzEdit(f *testing.F) {
	for _, file := range []string{"a,b\nc,d\n", "0,x\n\\N,y\n7,z", "\"a\n\"\"b\",x\n", "aba1,2|\naba", "\x83\\,\xe2\x82\n,\x81\x30\n", "x\\"} {
		for _, format := range []string{"", "\x00\x00\x00\x01\x01\x00\x01\x00\x00\x01", "\x03\x04\x02\x00\x02\x01\x02\x05\x01\x02", "\x00\x02\x00\x01\x01\x01\x01\x0b\x01\x00"} {
			f.Add([]byte(format), []byte(file))
		}
	}
	f.Fuzz(func(t *testing.T, format, file []byte) {
		form := fuzzed(format)
		if form.Check() != nil {
			return
		}
		ids := &counter{}
		var whole, parts bytes.Buffer
		err := Edit(&whole, bytes.NewReader(file), form, ids)
		again := Edit(&parts, iotest.OneByteReader(bytes.NewReader(file)), form, &counter{})
		if err != again { //nolint:errorlint // the same value
			t.Fatalf("%v, and byte by byte %v", err, again)
		}
		if err != nil || form.Charset >= UTF8MB3 && !form.MariaDB && refuses(form, file) {
			return
		}
		if !bytes.Equal(whole.Bytes(), parts.Bytes()) {
			t.Fatalf("%q, and byte by byte %q", whole.Bytes(), parts.Bytes())
		}
		added := len(whole.Bytes()) - len(file)
		if form.Columns[0].Field == Absent {
			if !without(whole.String(), string(file), form, int(ids.n)) {
				t.Fatalf("%q is not %q with %d ids", whole.Bytes(), file, ids.n)
			}
			return
		}
		assert.MustTrue(t, added <= int(ids.n)*24, "%d bytes more for %d ids", added, ids.n)
		// Every id is in its place now: a second pass finds all rows explicit. A column of text and
		// rows that stay as they are in strict mode aside.
		if form.Columns[0].Text || form.Strict || form.KeepZero || len(form.LineTerm) == 0 || form.Skip > 0 {
			return
		}
		second := &counter{}
		if err := Edit(io.Discard, bytes.NewReader(whole.Bytes()), form, second); err != nil || second.n != 0 {
			t.Fatalf("%q needs %d more ids, %v", whole.Bytes(), second.n, err)
		}
	})
}

// refuses reports whether a server would refuse the file, of which not all is passed on then.
func refuses(f *Format, file []byte) bool {
	e := newEditor(io.Discard, bytes.NewReader(file), f, &counter{})
	return e.edit() != nil || e.refused
}

// without reports whether whole is file but for ids in front of rows.
func without(whole, file string, f *Format, ids int) bool {
	for len(whole) > 0 {
		if strings.HasPrefix(whole, "1") || strings.HasPrefix(whole, "0"+string(f.FieldTerm)) {
			id, rest, ok := strings.Cut(whole, string(f.FieldTerm))
			if ok && (len(id) == 4 && id[:1] == "1" || id == "0") && without(rest, file, f, ids-1) {
				return true
			}
		}
		if file == "" || whole[0] != file[0] {
			return false
		}
		whole, file = whole[1:], file[1:]
	}
	return file == ""
}

// What a fuzz target would find must be found.
func TestWithoutNotices(t *testing.T) {
	f := form(nil)
	if !without("1001,a,b\n1002,1,c", "a,b\n1,c", f, 2) || without("1001,a,b\n", "a,c\n", f, 1) || without("1001,a", "a\n", f, 1) || without("a,1001,", "a", f, 1) {
		t.Error("a changed byte is not noticed")
	}
}
