package oracle

import (
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"idproxy/integration/assert"
	"idproxy/integration/harness"
	"idproxy/integration/servers"
	"idproxy/integration/wireclient"
	"idproxy/rewriter"
)

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
					want := s.Value(t, "SELECT HEX("+literal+")")
					assert.True(t, want == strings.ToUpper(hex.EncodeToString(d.Literal)), "%s: %q is read as %X, by the server as %s", m.name, literal, d.Literal, want)
					if strings.HasPrefix(literal, "'") && literal == string(rewriter.AppendLiteral(nil, []byte(text), mode)) && string(d.Literal) != text {
						t.Errorf("%s: %q is written as %q, and read as %q", m.name, text, literal, d.Literal)
					}
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
