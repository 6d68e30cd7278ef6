package rewriter

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"idproxy/integration/assert"
)

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
