package oracle

import (
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/go-mysql-org/go-mysql/client"

	"idproxy/integration/assert"
	"idproxy/integration/harness"
	"idproxy/integration/servers"
	"idproxy/integration/wireclient"
	"idproxy/rewriter"
)

// formMode is a setting of the session under which forms are generated.
type formMode struct {
	name, set     string
	charset       string // character_set_client; empty: utf8mb4
	login         string // a collation that the session logs in with
	ansi          bool   // " quotes names
	ignoreSpace   bool   // mid ( is a function
	noBackslash   bool   // \ is itself
	nullGenerates bool   // NO_AUTO_VALUE_ON_ZERO: 0, '0' and DEFAULT do not generate, so none is written
	lacks         string // the kind of server that does not have it
	rounds        int
}

// formModes are the modes of all forms. There is one for each character set that servers have and
// in which a backslash or a backtick may be the second byte of a character, and one for each
// setting that changes how an INSERT reads or which id it gets.
var formModes = []formMode{
	{name: "default", rounds: 3},
	{name: "ANSI_QUOTES", set: "SET SESSION sql_mode = CONCAT(@@sql_mode, ',ANSI_QUOTES')", ansi: true, rounds: 1},
	{name: "NO_BACKSLASH_ESCAPES", set: "SET sql_mode = CONCAT(@@sql_mode, ',NO_BACKSLASH_ESCAPES')", noBackslash: true, rounds: 1},
	{name: "NO_AUTO_VALUE_ON_ZERO", set: "SET sql_mode = 'NO_AUTO_VALUE_ON_ZERO,STRICT_TRANS_TABLES'", nullGenerates: true, rounds: 1},
	{name: "not strict", set: "SET sql_mode = ''", rounds: 1},
	{name: "ORACLE", set: "SET sql_mode = 'ORACLE,STRICT_TRANS_TABLES'", ansi: true, ignoreSpace: true, lacks: "MySQL", rounds: 1},
	{name: "auto_increment_increment", set: "SET auto_increment_increment = 3", rounds: 1},
	{name: "sql_auto_is_null", set: "SET sql_auto_is_null = 1", rounds: 1},
	{name: "latin1", set: "SET NAMES latin1", charset: "latin1", rounds: 1},
	{name: "gbk", set: "SET NAMES gbk", charset: "gbk", rounds: 1},
	{name: "gb18030", set: "SET NAMES gb18030", charset: "gb18030", lacks: "MariaDB", rounds: 1},
	{name: "big5", set: "SET NAMES big5", charset: "big5", rounds: 1},
	{name: "sjis", login: "sjis_japanese_ci", charset: "sjis", rounds: 1},
	{name: "cp932", set: "SET CHARACTER SET cp932", charset: "cp932", rounds: 1},
	{
		name: "gbk, NO_BACKSLASH_ESCAPES", login: "gbk_chinese_ci", set: "SET sql_mode = CONCAT(@@sql_mode, ',NO_BACKSLASH_ESCAPES')",
		charset: "gbk", noBackslash: true, rounds: 1,
	},
	{name: "big5, ANSI_QUOTES", set: "SET NAMES big5, sql_mode = CONCAT(@@sql_mode, ',ANSI_QUOTES')", charset: "big5", ansi: true, rounds: 1},
}

// modesOf returns the modes that a server has.
func modesOf(kind servers.Kind) []formMode {
	return slices.DeleteFunc(slices.Clone(formModes), func(m formMode) bool { return m.lacks == kind.String() })
}

// characters are some of a character set, with the second bytes that mislead: backslash, backtick,
// bar.
var characters = map[string][]string{
	"":        {"é", "日本", "😀"},
	"latin1":  {"\xe9", "\x95", "\xa0"},
	"gbk":     {"\x95\\", "\x81`", "\x81|", "\xb0\xa1"},
	"gb18030": {"\x95\\", "\x81`", "\x81|", "\x81\x30\x86\x30"},
	"big5":    {"\xb3\\", "\xa4`", "\xa4|", "\xa4\xa4"},
	"sjis":    {"\x95\\", "\x83`", "\x83|", "\xb1"},
	"cp932":   {"\x83\\", "\x83`", "\x83|", "\xb1"},
}

// charsetName is what the coverage calls the character set.
func (m formMode) charsetName() string {
	if m.charset == "" {
		return "utf8mb4"
	}
	return m.charset
}

func (m formMode) setup() []step {
	if m.set == "" {
		return nil
	}
	return []step{{sql: m.set}}
}

func (m formMode) options() []client.Option {
	if m.login == "" {
		return nil
	}
	return []client.Option{func(c *client.Conn) error { return c.SetCollation(m.login) }}
}

// former generates the forms of one mode.
type former struct {
	formMode
	*rand.Rand
	serial int // makes contents and explicit ids differ
}

// newFormer makes a former whose choices are the same at every run.
func newFormer(m formMode, family string) *former {
	h := fnv.New64()
	_, _ = h.Write([]byte(m.name + family)) // a hash does not fail
	return &former{formMode: m, Rand: rand.New(rand.NewPCG(1, h.Sum64()))}
}

func (f *former) pick(choices []string) string { return choices[f.IntN(len(choices))] }

// content returns a spelling of a string that no other row has.
func (f *former) content() string {
	spellings := []string{
		"'s%d'", "'s%d'", "'s%d'''", "'s%d),('", "'s%d;'", "'s%d -- '", "'s%d/*'", "CONCAT('s', %d)", "CONCAT(CONCAT('(',%d),')')", "'s%d`'",
	}
	for _, c := range characters[f.charset] {
		spellings = append(spellings, "'s%d"+c+"'", "'"+c+"s%d'", "'s%d"+c+"'''")
		if f.noBackslash {
			spellings = append(spellings, "'s%d"+c+`\'`)
		} else {
			spellings = append(spellings, "'s%d"+c+`\''`)
		}
	}
	if f.noBackslash {
		spellings = append(spellings, `'s%d\'`, `'\s%d'`)
	} else {
		spellings = append(spellings, `'s%d\''`, `'s%d\\'`)
	}
	if f.ansi {
		spellings = append(spellings, `'s%d"'`)
	} else {
		spellings = append(spellings, `"s%d'"`, `"s%d"""`, "_latin1's%d'", "N's%d'")
	}
	return fmt.Sprintf(f.pick(spellings), f.serial)
}

func (f *former) quoteMark() string {
	if f.ansi {
		return `"`
	}
	return "`"
}

func (f *former) quote(name string) string { return f.quoteMark() + name + f.quoteMark() }

// TestLiterals holds the reading and writing of string literals against the servers' own: what
// ReadDynamic takes for the text of a PREPARE is what the server makes of the literal, and what
// AppendLiteral writes it reads as the text again.
func TestLiterals(t *testing.T) {
	t.Parallel()
	harness.EachServer(t, func(t *testing.T, server *servers.Server) {
		t.Parallel()
		random := rand.New(rand.NewPCG(1, 2))
		for _, m := range formModes {
			if m.login != "" || m.lacks == server.Kind.String() || strings.Contains(m.set, "SET CHARACTER SET") {
				continue // a client character set of their own, or another one for literals
			}
			s := wireclient.Open(t, server.Addr, "")
			s.Must(t, "SET NAMES utf8mb4")
			if m.set != "" {
				s.Must(t, m.set)
			}
			mode := rewriter.Mode{
				ANSIQuotes: m.ansi, NoBackslashEscapes: m.noBackslash, MariaDB: server.Kind.String() == "MariaDB", Charset: rewriter.CharsetOf(m.charset),
			}
			for range 60 {
				text := randomText(random, m)
				for _, literal := range []string{string(rewriter.AppendLiteral(nil, []byte(text), mode)), randomLiteral(random, text, m)} {
					d, err := rewriter.ReadDynamic([]byte("PREPARE s FROM "+literal), mode)
					assert.MustTrue(t, err == nil && d.From == rewriter.SourceLiteral, "%s: %q is read as %+v, %v", m.name, literal, d, err)
					assert.Equal(t, fmt.Sprintf("%s: %q is read as", m.name, literal), fmt.Sprintf("%X", d.Literal), s.Value(t, "SELECT HEX("+literal+")"))
					assert.True(t, !strings.HasPrefix(literal, "'") || literal != string(rewriter.AppendLiteral(nil, []byte(text), mode)) || string(d.Literal) == text,
						"%s: %q is written as %q, and read as %q", m.name, text, literal, d.Literal)
				}
			}
		}
	})
}

// randomText is a text of what matters in literals.
func randomText(random *rand.Rand, m formMode) string {
	pieces := append([]string{"a", "0", "n", "%", "_", "'", `"`, `\`, "`", "\n", "\x1a", ";", " ", "-- "}, characters[m.charset]...)
	if m.charset == "latin1" {
		pieces = append(pieces, "\xff", "\x81")
	}
	var b strings.Builder
	for range random.IntN(12) {
		b.WriteString(pieces[random.IntN(len(pieces))])
	}
	return b.String()
}

// randomLiteral spells a literal of a text in ways that AppendLiteral does not use: other quotes,
// and escapes of any kind.
func randomLiteral(random *rand.Rand, text string, m formMode) string {
	quote := "'"
	if !m.ansi && random.IntN(2) == 0 {
		quote = `"`
	}
	escapes := []string{`\n`, `\0`, `\t`, `\Z`, `\%`, `\_`, `\q`, `\'`, `\"`, `\b`, `\r`, `\\`, "\\`"}
	var b strings.Builder
	b.WriteString(quote)
	for _, c := range strings.Map(func(r rune) rune {
		if r > '~' || r == '\\' {
			return 'x'
		}
		return r
	}, text) {
		switch {
		case string(c) == quote:
			b.WriteString(quote + quote)
		default:
			b.WriteRune(c)
		}
		if !m.noBackslash && random.IntN(3) == 0 {
			b.WriteString(escapes[random.IntN(len(escapes))])
		}
		if set := characters[m.charset]; random.IntN(4) == 0 {
			fmt.Fprint(&b, set[random.IntN(len(set))])
		}
	}
	return b.String() + quote
}
