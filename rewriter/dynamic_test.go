package rewriter

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"

	"idproxy/integration/assert"
)

// shown is a Dynamic as the tests word it.
func (d *Dynamic) shown(text string) string {
	verb := [...]string{"prepare", "execute", "immediate", "deallocate"}[d.Verb]
	out := fmt.Sprintf("%s %q", verb, d.Name)
	switch d.From {
	case SourceLiteral:
		out += fmt.Sprintf(" literal %q", d.Literal)
	case SourceAsked:
		out += " ask " + text[d.Source.Start:d.Source.End]
	case SourceOther:
		out += " other " + text[d.Source.Start:d.Source.End]
	}
	if d.Using {
		out += " using"
	}
	for _, a := range d.Arguments {
		kind := map[Source]string{SourceAsked: "ask", SourceOther: "other"}[a.From]
		if a.Default {
			kind = "default"
		}
		out += fmt.Sprintf(" [%s %s]", kind, text[a.Start:a.End])
	}
	return out + fmt.Sprintf(" end %q", text[d.End:])
}

func TestReadDynamic(t *testing.T) {
	maria, mysql := Mode{MariaDB: true, Version: 101119}, Mode{Version: 90704}
	const refused, unsupported = "refused", "unsupported"
	for _, tt := range []struct {
		mode       Mode
		text, want string
	}{
		{mysql, "PREPARE s FROM 'SELECT 1'", `prepare "s" literal "SELECT 1" end ""`},
		{mysql, "prepare S from 'SELECT 1' ; ", `prepare "s" literal "SELECT 1" end " ; "`},
		{mysql, "PREPARE `A``b` FROM \"SELECT 1\"", `prepare "a` + "`" + `b" literal "SELECT 1" end ""`},
		{Mode{ANSIQuotes: true}, `PREPARE "s" FROM 'x'`, `prepare "s" literal "x" end ""`},
		{Mode{ANSIQuotes: true}, `PREPARE s FROM "x"`, refused},
		{mysql, "PREPARE s FROM 'it''s \\'a\\\\b\\n\\%\\_\\q'", `prepare "s" literal "it's 'a\\b\n\\%\\_q" end ""`},
		{Mode{NoBackslashEscapes: true}, `PREPARE s FROM 'a\b''c'`, `prepare "s" literal "a\\b'c" end ""`},
		{mysql, "PREPARE s FROM ''", `prepare "s" literal "" end ""`},
		{mysql, "PREPARE s FROM @v", `prepare "s" ask @v end ""`},
		{mysql, "PREPARE s FROM @`a b`", "prepare \"s\" ask @`a b` end \"\""},
		{mysql, "PREPARE s FROM @'v' -- x", `prepare "s" ask @'v' end " -- x"`},
		{mysql, "PREPARE s FROM @@version", refused},
		{mysql, "PREPARE s FROM @a+1", refused},
		{mysql, "PREPARE s FROM 'a' 'b'", refused},
		{mysql, "PREPARE s FROM N'a'", refused},
		{mysql, "PREPARE s FROM CONCAT('a')", refused},
		{mysql, "PREPARE s FROM", refused},
		{mysql, "PREPARE FROM 'x'", refused},
		{mysql, "PREPARE a.b FROM 'x'", refused},
		{mysql, "PREPARE s FROM 'x'; x", refused},
		{mysql, "PREPARE s FROM 'x' USING @a", refused},
		{mysql, "PREPARE s FROM 'x", unsupported},
		{mysql, "PREPARE é FROM 'x'", `prepare "" literal "x" end ""`},
		{mysql, "PREPARE\xa0s FROM 'x'", unsupported},
		{mysql, "PREPARE s\xc2\xa0 FROM 'x'", `prepare "" literal "x" end ""`},
		{mysql, "/*!50112 PREPARE s FROM @x */", `prepare "s" ask @x end " */"`},
		{mysql, "/*!50112 PREPARE s */ FROM @x", unsupported},
		{mysql, "PREPARE s /*!50112 FROM */ @x", unsupported},
		{Mode{}, "PREPARE s FROM /*!50112 @x */", unsupported},
		{maria, "PREPARE s FROM 'a' 'b'", `prepare "s" ask 'a' 'b' end ""`},
		{maria, "PREPARE s FROM CONCAT('a', @t, UPPER(@@version))", `prepare "s" ask CONCAT('a', @t, UPPER(@@version)) end ""`},
		{maria, "PREPARE s FROM _utf8mb4'a'", `prepare "s" ask _utf8mb4'a' end ""`},
		{maria, "PREPARE s FROM x'41'", `prepare "s" ask x'41' end ""`},
		{maria, "PREPARE s FROM IF(@a > 1 AND @b IS NULL, 'x', 'y')", `prepare "s" ask IF(@a > 1 AND @b IS NULL, 'x', 'y') end ""`},
		{maria, "PREPARE s FROM CONCAT('a', RAND())", `prepare "s" other CONCAT('a', RAND()) end ""`},
		{maria, "PREPARE s FROM CONCAT('a', @n:=@n+1)", `prepare "s" other CONCAT('a', @n:=@n+1) end ""`},
		{maria, "PREPARE s FROM f(1)", `prepare "s" other f(1) end ""`},
		{maria, "PREPARE s FROM db.concat(1)", `prepare "s" other db.concat(1) end ""`},
		{maria, "PREPARE s FROM `concat`(1)", "prepare \"s\" other `concat`(1) end \"\""},
		{maria, "PREPARE s FROM (SELECT 'x')", `prepare "s" other (SELECT 'x') end ""`},
		{maria, "PREPARE s FROM column_a", `prepare "s" other column_a end ""`},
		{maria, "PREPARE s FROM ,", refused},
		{maria, "PREPARE s FROM ('a'", refused},
		{mysql, "EXECUTE s", `execute "s" end ""`},
		{mysql, "EXECUTE s;", `execute "s" end ";"`},
		{mysql, "EXECUTE 1s USING @a,@`b c` , @'d'", "execute \"1s\" using [ask @a] [ask @`b c`] [ask @'d'] end \"\""},
		{mysql, "EXECUTE s USING 1", refused},
		{mysql, "EXECUTE s USING @a, @b+1", refused},
		{mysql, "EXECUTE s USING", refused},
		{mysql, "EXECUTE s USING @a,", refused},
		{mysql, "EXECUTE s, t", refused},
		{
			maria, "EXECUTE s USING 1, NULL, DEFAULT, IGNORE, CONCAT(@a, 'x'), f(1), DEFAULT(a)",
			`execute "s" using [ask 1] [ask NULL] [default DEFAULT] [default IGNORE] [ask CONCAT(@a, 'x')] [other f(1)] [other DEFAULT(a)] end ""`,
		},
		{maria, "EXECUTE IMMEDIATE 'SELECT ?' USING -1.5e3", `immediate "" literal "SELECT ?" using [ask -1.5e3] end ""`},
		{maria, "EXECUTE IMMEDIATE @s", `immediate "" ask @s end ""`},
		{maria, "EXECUTE IMMEDIATE", refused},
		{mysql, "EXECUTE IMMEDIATE 'SELECT 1'", refused},
		{mysql, "EXECUTE immediate", refused},
		{mysql, "DEALLOCATE PREPARE S", `deallocate "s" end ""`},
		{mysql, "DROP PREPARE s", `deallocate "s" end ""`},
		{mysql, "DROP PREPARE", refused},
		{mysql, "DEALLOCATE s", refused},
	} {
		got := ""
		d, err := ReadDynamic([]byte(tt.text), tt.mode)
		var form *Unsupported
		switch {
		case errors.Is(err, ErrRefusedByServer):
			got = refused
		case errors.As(err, &form):
			got = unsupported
		case err != nil:
			got = err.Error()
		default:
			got = d.shown(tt.text)
		}
		assert.True(t, got == tt.want, "%q:\ngot  %s (%v)\nwant %s", tt.text, got, err, tt.want)
	}
}

func TestHeadOfDynamic(t *testing.T) {
	for text, want := range map[string]Kind{
		"DEALLOCATE PREPARE s": Deallocate, "DROP PREPARE s": Deallocate, "drop /* x */ prepare s": Deallocate, "DROP TABLE prepare": DDL,
		"CREATE TABLE t (prepare INT)": DDL,
	} {
		assert.Equal(t, text, headOf(text, Mode{}).Kind, want)
	}
}

func TestNamesParameters(t *testing.T) {
	for text, want := range map[string]bool{
		"INSERT INTO t VALUES (?, :a)": true, "INSERT INTO t VALUES (:1)": true, "SELECT @a:=1": false, "SELECT ':a', `:b`": false, "SELECT 'a": true,
	} {
		assert.Equal(t, text, NamesParameters([]byte(text), Mode{MariaDB: true}), want)
	}
}

// FuzzDynamic reads what AppendLiteral writes, and any text as a statement.
func FuzzDynamic(f *testing.F) {
	for _, s := range []string{
		"INSERT INTO t VALUES ('x')", "PREPARE s FROM 'SELECT \\'1\\' ' ", "EXECUTE s USING @a, 1", "EXECUTE IMMEDIATE CONCAT('a', @b) USING (1", "\\", "'", "a\x00\xff\\%",
		"DROP PREPARE s;", "PREPARE s FROM /*!50000 @a */",
	} {
		f.Add(s, byte(0))
		f.Add(s, byte(7))
		f.Add(s+"\x95\\\x81", byte(0x14))
	}
	f.Fuzz(func(t *testing.T, text string, modes byte) {
		m := Mode{ANSIQuotes: modes&1 > 0, NoBackslashEscapes: modes&2 > 0, MariaDB: modes&4 > 0, Version: 101119, Charset: Charset(modes >> 4 % 5)}
		sql := AppendLiteral([]byte("PREPARE s FROM "), []byte(text), m)
		d, err := ReadDynamic(sql, m)
		assert.MustTrue(t, err == nil && d.From == SourceLiteral && string(d.Literal) == text && d.End == len(sql), "%q under %+v is read as %+v, %v", sql, m, d, err)
		if d, err = ReadDynamic([]byte(text), m); err != nil {
			return
		}
		last := d.NameEnd
		for _, span := range append([]Span{d.Source}, spansOf(d.Arguments)...) {
			assert.MustTrue(t, span == (Span{}) || span.Start >= last && span.End > span.Start && span.End <= len(text), "%q: %+v", text, d)
			last = max(last, span.End)
		}
		if last > d.End || d.End > len(text) || strings.Trim(text[d.End:], "; \t\r\n") != "" && !strings.ContainsAny(text[d.End:], "-#/*\v\f\x00") {
			t.Fatalf("%q ends at %d of %+v", text, last, d)
		}
	})
}

func spansOf(arguments []Argument) (spans []Span) {
	for _, a := range arguments {
		spans = append(spans, a.Span)
	}
	return spans
}

func TestPlainDynamic(t *testing.T) {
	for text, want := range map[string]bool{
		"":                          true,
		"PREPARE s FROM 'SELECT 1'": true,
		"prepare `s`\tfrom'it''s';LOAD XML INFILE 'x' INTO TABLE \"t\"":            true,
		"SELECT 1; PREPARE s FROM 'SELECT 1' ; EXECUTE s USING @a; DROP PREPARE s": true,
		"SELECT '\xed@\x83\\'; PREPARE s FROM 'SELECT 1'":                          true,
		"DEALLOCATE PREPARE s":                            true,
		"XA PREPARE 'x'":                                  true,
		"SELECT @@max_prepared_stmt_count, prepare_it":    true,
		"EXECUTE s":                                       true,
		"EXECUTE IMMEDIATE 'SELECT 1'":                    true,
		"GRANT EXECUTE ON *.* TO a":                       true,
		"GRANT EXECUTE, SELECT ON *.* TO a":               true,
		"PREPARE s FROM @x":                               false,
		"PREPARE s FROM \"SELECT 1\"":                     false,
		"PREPARE s FROM 'INSERT INTO ' 'orders'":          false,
		"PREPARE s FROM CONCAT('INSERT INTO ', 'orders')": false,
		"PREPARE s FROM 'or\\ders'":                       false,
		"PREPARE s FROM 'caf\xe9'":                        false,
		"PREPARE s FROM 'SELECT":                          false,
		"PREPARE s/**/FROM @x":                            false,
		"PREPARE/**/s FROM 'SELECT 1'":                    false,
		"PREPARE\xa0s FROM @x":                            false,
		"PREPARE \"s\" FROM @x":                           false,
		"PREPARE `a``b` FROM @x":                          false,
		"/*!50000PREPARE s FROM @x*/":                     false,
		"/*!50000PREPARE*/ s FROM @x":                     false,
		"EXECUTE/**/IMMEDIATE @x":                         false,
		"EXECUTE IMMEDIATE @x":                            false,
		"EXECUTE IMMEDIATE 'SELECT ?' USING 1":            false,
		"execute immediate/**/'SELECT 1'":                 false,
		"EXECUTE -- x\nIMMEDIATE @x":                      false,
		"PREPARE s FROM 'EXECUTE IMMEDIATE @x'":           false,
		"SELECT 'PREPARE s FROM @x'":                      false,
	} {
		assert.Equal(t, fmt.Sprintf("PlainDynamic(%q)", text), PlainDynamic([]byte(text)), want)
	}
}

// FuzzPlainDynamic: however a plain text is read, what it prepares are its own bytes between
// quotes.
func FuzzPlainDynamic(f *testing.F) {
	f.Add("PREPARE s FROM 'SELECT 1'; EXECUTE s", uint8(0))
	f.Add("SELECT \"a'; PREPARE s FROM 'SELECT ''1'\"", uint8(1))
	f.Add("EXECUTE IMMEDIATE 'SELECT 1' ; DROP PREPARE s", uint8(4))
	f.Fuzz(func(t *testing.T, text string, how uint8) {
		if !PlainDynamic([]byte(text)) {
			return
		}
		mode := Mode{
			ANSIQuotes: how&1 != 0, NoBackslashEscapes: how&2 != 0, MariaDB: how&4 != 0, Charset: Charset(how >> 3 % 5),
			MultiStatements: true, Version: 110000,
		}
		for at := 0; ; {
			span, last, ok := Next([]byte(text), at, mode)
			if !ok {
				return
			}
			sql := []byte(text)[span.Start:span.End]
			dyn, err := ReadDynamic(sql, mode)
			head, _ := ReadHead(sql, mode)
			dynamic := head.Kind == Prepare || head.Kind == Execute
			if dynamic && err == nil && dyn.From != SourceNone &&
				(dyn.From != SourceLiteral || !bytes.Contains([]byte(text), bytes.ReplaceAll(dyn.Literal, []byte("'"), []byte("''")))) {
				t.Errorf("%q prepares %q of source %d", text, dyn.Literal, dyn.From)
			}
			unseen := Hidden(sql, mode).Unseen
			assert.True(t, dynamic || !unseen || !strings.Contains(strings.ToLower(string(sql)), "prepare"), "%q hides a text that is not known", text)
			if last {
				return
			}
			at = span.End + 1
		}
	})
}
