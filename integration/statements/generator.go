package statements

import (
	"math/rand/v2"
)

// Dialects of SQL.
const (
	MariaDB = "mariadb"
	MySQL   = "mysql"
)

// Way is how a text is sent.
type Way int

// Ways to send a text.
const (
	AsText     Way = iota // COM_QUERY, also of several statements
	AsPrepared            // COM_STMT_PREPARE, executed twice, closed
)

// Step is one text of a session.
type Step struct {
	Way    Way
	Text   string
	Varies bool // rows, and what an error says, are not the same in every session
}

// Session is what one connection sends.
type Session struct {
	Charset string // of the connection, set first
	Mode    string // sql_mode, set first
	Steps   []Step
}

// Generator draws sessions, see the package documentation. It is not safe for concurrent use.
type Generator struct {
	rules  map[name]*choice
	random *rand.Rand
	lexicon

	left   int // words that the statement may still take
	varies bool
	words  []string
}

// New returns the generator of a dialect.
func New(dialect string, seed uint64) (*Generator, error) {
	rules, err := parse(source, dialect)
	if err != nil {
		return nil, err
	}
	g := &Generator{rules: rules, random: rand.New(rand.NewPCG(seed, 1))}
	g.lexicon.random = g.random
	return g, nil
}

var (
	charsets = []string{"utf8mb4", "utf8mb3", "latin1", "gbk", "sjis", "cp932", "big5", "cp1251", "ujis", "euckr", "binary", "ascii"}
	modes    = []string{"", "", "ANSI_QUOTES", "NO_BACKSLASH_ESCAPES", "ANSI_QUOTES,NO_BACKSLASH_ESCAPES", "STRICT_ALL_TABLES", "IGNORE_SPACE", "NO_AUTO_VALUE_ON_ZERO", "PIPES_AS_CONCAT"}
)

// Session draws a session of n steps.
func (g *Generator) Session(n int) Session {
	s := Session{Charset: pick(g.random, charsets), Mode: pick(g.random, modes)}
	g.begin(s.Charset, s.Mode)
	for range n {
		s.Steps = append(s.Steps, g.step())
	}
	return s
}

// Statement draws one statement of a production in grammar.bnf, now and then a broken one, for a
// session with utf8mb4.
func (g *Generator) Statement(production, mode string) string {
	g.begin("utf8mb4", mode)
	text := g.of(production)
	if g.random.IntN(16) == 0 {
		text = g.broken(text)
	}
	return text
}

// step draws a text: one statement, several, or a broken one.
func (g *Generator) step() Step {
	g.varies = false
	text := g.text()
	for range g.random.IntN(8) - 4 {
		text += g.maybe(10, " ", "") + ";" + g.maybe(3, " ", "") + g.text()
	}
	if g.random.IntN(12) == 0 {
		text += ";"
	}
	if g.random.IntN(8) == 0 {
		text = g.broken(text)
	}
	way := AsText
	if g.random.IntN(4) == 0 {
		way = AsPrepared
	}
	return Step{way, text, g.varies}
}

// text draws one statement.
func (g *Generator) text() string { return g.of("statement") }

// of draws one statement of a production.
func (g *Generator) of(production string) string {
	g.words, g.left = nil, 8+g.random.IntN(60)
	g.expand(name(production))
	return g.join(g.words)
}

// inString draws a statement for a string literal of the one that is being drawn: one whose rows do
// not vary, for it may be executed by any later step.
func (g *Generator) inString() string {
	words, left, varies := g.words, g.left, g.varies
	var text string
	for g.varies = true; g.varies; {
		g.varies = false
		text = g.text()
	}
	g.words, g.left, g.varies = words, left-4, varies
	return g.quoted(text, "'")
}

func (g *Generator) expand(n node) {
	switch n := n.(type) {
	case literal:
		g.add(string(n))
	case lexeme:
		if n == "statement_text" {
			g.add(g.inString())
			return
		}
		g.add(g.lexeme(string(n)))
	case name:
		if rule := g.rules[n]; rule != nil {
			g.expand(*rule)
			return
		}
		g.add(string(n))
	case choice:
		if len(n.alternatives) == 0 {
			return
		}
		a := g.choose(n.alternatives)
		g.varies = g.varies || a.varies
		for _, part := range a.sequence {
			g.expand(part)
		}
	case optional:
		if g.left > 0 && g.random.IntN(5) < 2 {
			g.expand(n.node)
		}
	case several:
		for g.left > 0 && g.random.IntN(5) < 2 {
			g.expand(n.node)
		}
	case list:
		g.expand(n.node)
		for range 2 {
			if g.left > 0 && g.random.IntN(5) < 2 {
				g.add(",")
				g.expand(n.node)
			}
		}
	}
}

// choose takes an alternative, mostly one that was used least. When the statement is long enough it
// takes a short one.
func (g *Generator) choose(all []*alternative) *alternative {
	best := all[g.random.IntN(len(all))]
	if g.left <= 0 {
		for _, a := range all {
			if a.cost < best.cost {
				best = a
			}
		}
	} else if g.random.IntN(4) > 0 {
		for _, a := range all {
			if a.uses < best.uses {
				best = a
			}
		}
	}
	best.uses++
	return best
}

func (g *Generator) add(word string) {
	g.left--
	g.words = append(g.words, word)
}

// Unused names the alternatives that no statement has used so far.
func (g *Generator) Unused() (out []string) {
	for rule, c := range g.rules {
		for _, a := range c.alternatives {
			if a.uses == 0 {
				out = append(out, string(rule)+": "+describe(a.sequence))
			}
		}
	}
	return out
}

// describe shows the words of an alternative.
func describe(parts sequence) (out string) {
	for _, n := range parts {
		switch n := n.(type) {
		case literal:
			out += string(n) + " "
		case name:
			out += string(n) + " "
		case lexeme:
			out += "@" + string(n) + " "
		default:
			out += "... "
		}
	}
	return out
}

func pick[T any](random *rand.Rand, all []T) T { return all[random.IntN(len(all))] }
