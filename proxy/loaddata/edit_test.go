package loaddata

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"idproxy/integration/assert"
)

// counter gives ids from 1001 on and notes explicit ones.
type counter struct {
	n        uint64
	most     uint64 // 0: no end
	explicit []Explicit
}

var errOut = errors.New("out of ids")

func (c *counter) Next(int) (uint64, error) {
	if c.most > 0 && c.n == c.most {
		return 0, errOut
	}
	c.n++
	return 1000 + c.n, nil
}

func (c *counter) Explicit(_ int, id Explicit) error {
	c.explicit = append(c.explicit, id)
	return nil
}

// form is a Format with the defaults of the servers.
func form(change func(*Format)) *Format {
	f := &Format{FieldTerm: []byte(","), LineTerm: []byte("\n"), Enclosed: None, Escape: '\\', Fields: 2, MariaDB: true, Columns: []Column{{Field: Absent}}}
	if change != nil {
		change(f)
	}
	return f
}

func edited(f *Format, in string) (string, error) {
	var out bytes.Buffer
	err := Edit(&out, strings.NewReader(in), f, &counter{})
	return out.String(), err
}

func TestEdit(t *testing.T) {
	quoted := func(f *Format) { f.Enclosed = '"' }
	at := func(field int) func(*Format) { return func(f *Format) { f.Columns[0].Field = field; f.Enclosed = '"' } }
	const ofMariaDB, ofMySQL = true, false
	set := func(cs Charset, server bool) func(*Format) {
		return func(f *Format) { f.Charset, f.MariaDB = cs, server }
	}
	for _, test := range []struct {
		name     string
		change   func(*Format)
		in, want string
	}{
		{"no lines", nil, "", ""},
		{"lines", nil, "a,b\nc,d\n", "1001,a,b\n1002,c,d\n"},
		{"no end", nil, "a,b\nc,d", "1001,a,b\n1002,c,d"},
		{"empty line", nil, "\n\n", "1001,\n1002,\n"},
		{"escaped ends", nil, "a\\\nb,c\\,d\n", "1001,a\\\nb,c\\,d\n"},
		{"enclosed ends", quoted, "\"a\n\"\"b\",\"c\n\"\nd\n", "1001,\"a\n\"\"b\",\"c\n\"\n1002,d\n"},
		{"rest of a line is not enclosed", quoted, "a,b,\"c\nd\"\n", "1001,a,b,\"c\n1002,d\"\n"},
		{"rest of a line is escaped", nil, "a,b,c\\\nd\ne", "1001,a,b,c\\\nd\n1002,e"},
		{"starting by", func(f *Format) { f.LineStart = []byte(">>") }, "x>>a\n>b\n>>>c", "x>>1001,a\n>b\n>>1002,>c"},
		{"skipped lines", func(f *Format) { f.Skip = 2 }, "h\\\nh\n\"\na", "h\\\nh\n\"\n1001,a"},
		{"lines without end", func(f *Format) { f.LineTerm = nil }, "a,b,c,d", "1001,a,b,1002,c,d"},
		{"skipped rows", func(f *Format) { f.LineTerm, f.Skip = nil, 1 }, "a,b,c,d", "0,a,b,1001,c,d"},
		{"lines end as fields", func(f *Format) { f.LineTerm, f.Skip = []byte(","), 1 }, "a,b,c,d", "1001,a,b,1002,c,d"},
		{"long terminators", func(f *Format) { f.FieldTerm, f.LineTerm = []byte("|+"), []byte("|-") }, "a|||+b|-c", "1001|+a|||+b|-1002|+c"},
		{"sjis hides an escape", set(SJIS, ofMariaDB), "\x83\\\nb\nc", "1001,\x83\\\n1002,b\n1003,c"},
		{"latin1 does not", set(Single, ofMariaDB), "\x83\\\nb\nc", "1001,\x83\\\nb\n1002,c"},
		{"broken, MySQL", set(UTF8MB4, ofMySQL), "\xE0\nb", "1001,\xE0\n1002,b"},
		{"refused, MySQL", set(UTF8MB4, ofMySQL), "a\n\x80\nb", "1001,a\n1002,\x80\nb"},
		{"generated", at(0), "0,a\n\\N,b\nNULL,c\n\"0\",d\n00 ,e\n,f\nx,g\n", "1001,a\n1002,b\n1003,c\n\"1004\",d\n1005 ,e\n1006,f\n1007,g\n"},
		{"explicit", at(0), "7,a\n-1,b\n0.5,c\n\"NULL\",d\n", "7,a\n-1,b\n0.5,c\n\"1001\",d\n"},
		{"tails", at(0), "0x,a\n0.0.5,b\n0e0e5,c\n0-,d\n", "1001x,a\n1002,b\n1003,c\n1004-,d\n"},
		{"at the end", at(1), "a,0\nb,\"0\"\nc,7\nd,0,x\n", "a,1001\nb,\"1002\"\nc,7\nd,1003,x\n"},
		{"missing", at(1), "a\n\"b\"\n\nc", "a,1001\n\"b\",1002\n,1003\nc,1004"},
		{"text, strict in the first row alone", func(f *Format) { f.Columns[0].Field, f.StrictFirst = 0, true }, "x,0\nx,1", "x,0\n1001,1"},
		{"missing in strict mode", func(f *Format) { f.Columns[0].Field, f.Strict = 1, true }, "a\nb,x\nc,0", "a\nb,x\nc,1001"},
		{"zero is kept", func(f *Format) { f.Columns[0].Field, f.KeepZero = 0, true }, "0,a\n,b\n\\N,c", "0,a\n,b\n1001,c"},
		{"below zero", func(f *Format) { f.Columns[0] = Column{Field: 0, Unsigned: true} }, "-5,a\n-0.2,b", "1001,a\n1002,b"},
		{"text", func(f *Format) { f.Columns[0] = Column{Field: 0, Text: true} }, "0,a\nx,b\n0x,c\n,d", "1001,a\nx,b\n0x,c\n,d"},
		{"two columns", func(f *Format) { f.Columns = []Column{{Field: 1}, {Field: Absent}} }, "a,0\nb,7", "1001,a,1002\n1003,b,7"},
	} {
		f := form(test.change)
		assert.NoError(t, f.Check(), test.name)
		got, err := edited(f, test.in)
		if test.name == "refused, MySQL" {
			test.want = strings.TrimSuffix(test.want, "\nb") + got[len(strings.TrimSuffix(test.want, "\nb")):] // how much more is sent does not matter
		}
		assert.True(t, err == nil && got == test.want, "%s: %q -> %q, %v; want %q", test.name, test.in, got, err, test.want)
		var out bytes.Buffer
		if err := Edit(&out, iotest.OneByteReader(strings.NewReader(test.in)), f, &counter{}); err != nil || test.name != "refused, MySQL" && out.String() != got {
			t.Errorf("%s, byte by byte: %q, %v; want %q", test.name, out.String(), err, got)
		}
	}
}

func TestEditErrors(t *testing.T) {
	f := form(nil)
	var out bytes.Buffer
	assert.ErrorIs(t, "out of ids", Edit(&out, strings.NewReader("a\nb\nc\n"), f, &counter{most: 2}), errOut)
	assert.ErrorIs(t, "reader", Edit(&out, iotest.ErrReader(errOut), f, &counter{}), errOut)
	assert.NoError(t, Edit(iotest.TruncateWriter(nil, 0), strings.NewReader(""), f, &counter{}), "nothing to write")
	last := form(func(f *Format) { f.Columns[0].Field, f.Fields, f.Enclosed = 2, 3, '"' })
	for _, in := range []string{"a\n", "a,\"b", "a,b\\"} {
		assert.Of(edited(last, in)).ErrorIs(t, fmt.Sprintf("%q", in), ErrShortLine)
	}
	for _, in := range []string{"a\x83\n", "a|\n"} { // what goes behind would be taken for a part of it
		assert.Of(edited(form(func(f *Format) { f.Columns[0].Field, f.FieldTerm, f.Charset = 1, []byte("||"), SJIS }), in)).ErrorIs(t, fmt.Sprintf("%q", in), ErrShortLine)
	}
	for _, in := range []string{strings.Repeat("0", 1025) + ",a", strings.Repeat("0", 1<<20)} {
		assert.Of(edited(form(func(f *Format) { f.Columns[0].Field = 0 }), in)).ErrorIs(t, "long id", ErrLongID)
	}
}

func TestCheck(t *testing.T) {
	for name, change := range map[string]func(*Format){
		"fixed rows":   func(f *Format) { f.FieldTerm = nil },
		"no field end": func(f *Format) { f.FieldTerm, f.Enclosed = nil, '"' },
		"digit":        func(f *Format) { f.LineTerm = []byte("7") },
		"escape":       func(f *Format) { f.Escape = ',' },
		"enclosed":     func(f *Format) { f.Enclosed = ',' },
		"prefix":       func(f *Format) { f.LineTerm = []byte(",,") },
		"long":         func(f *Format) { f.LineStart = make([]byte, 1025) },
		"high":         func(f *Format) { f.LineStart = []byte{0x80} },
	} {
		assert.Fails(t, name+" is not refused", form(change).Check(), "")
	}
}

func TestParseNumber(t *testing.T) {
	for in, want := range map[string]number{
		"": {}, "x": {}, "-": {}, ".": {}, "e1": {}, "0": {end: 1}, " +007x": {end: 5, value: 7}, "-0.4": {end: 4, negative: true},
		"0.49": {end: 4}, "0.5": {end: 3, value: 1}, "0.40.4": {end: 4, value: 40}, "1.5e1": {end: 5, value: 15}, "5e-1": {end: 4, value: 1}, "49e-2": {end: 5},
		"18446744073709551616": {end: 20, value: 1<<64 - 1}, "1e30": {end: 4, value: 1<<64 - 1}, "1e-30": {end: 5}, "0e999999999999": {end: 14},
		"0.00000000000000000000000000001": {end: 31}, "123456789012345678901234567890e-30": {end: 34}, "1e": {end: 1, value: 1},
	} {
		assert.Equal(t, in, parseNumber([]byte(in), true), want)
	}
}

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
		assert.MustTrue(t, bytes.Equal(whole.Bytes(), parts.Bytes()), "%q, and byte by byte %q", whole.Bytes(), parts.Bytes())
		added := len(whole.Bytes()) - len(file)
		if form.Columns[0].Field == Absent {
			assert.MustTrue(t, without(whole.String(), string(file), form, int(ids.n)), "%q is not %q with %d ids", whole.Bytes(), file, ids.n)
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
