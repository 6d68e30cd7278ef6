package statements

import (
	_ "embed"
	"fmt"
	"strings"
)

//go:embed grammar.bnf
var source string

// node is a part of a production.
type node interface{}

type (
	literal  string // a word as it stands; in front of glue there is no space
	name     string // a production
	lexeme   string // what the session has, see lexicon
	optional struct{ node }
	list     struct{ node } // one to three, with commas between
	several  struct{ node } // nothing to two
	sequence []node
	choice   struct{ alternatives []*alternative }
)

// glue, in a literal, takes the place of the space in front of it.
const glue = '_'

// alternative is one of a choice.
type alternative struct {
	sequence
	dialect string // of this one alone, "": of both
	varies  bool   // its rows are not the same in every session
	uses    int
	cost    int // the fewest words it takes
}

// parse reads the productions that a dialect has.
func parse(text, dialect string) (map[name]*choice, error) {
	p := &parser{dialect: dialect}
	for line := range strings.Lines(text) {
		if line, _, _ := strings.Cut(line, "# "); !strings.HasPrefix(line, "#") {
			p.words = append(p.words, words(line)...)
		}
	}
	rules := map[name]*choice{}
	for len(p.words) > 0 {
		rule := name(strings.TrimSuffix(p.next(), ":"))
		if rules[rule] != nil {
			return nil, fmt.Errorf("production %s: there are two", rule)
		}
		c := p.choice()
		rules[rule] = &c
		if end := p.next(); end != ";" {
			return nil, fmt.Errorf("production %s: %q where ; was expected", rule, end)
		}
	}
	return rules, cost(rules)
}

// words cuts a line at spaces, but for those in quotes.
func words(line string) (out []string) {
	for line = strings.TrimSpace(line); line != ""; line = strings.TrimSpace(line) {
		end := strings.IndexAny(line, " \t")
		if q := line[0]; q == '\'' || q == '"' {
			end = strings.IndexByte(line[1:], q) + 2
		}
		if end < 0 {
			end = len(line)
		}
		out, line = append(out, line[:end]), line[end:]
	}
	return out
}

type parser struct {
	words   []string
	dialect string
}

func (p *parser) peek() string {
	if len(p.words) == 0 {
		return ";"
	}
	return p.words[0]
}

func (p *parser) next() string {
	w := p.peek()
	if len(p.words) > 0 {
		p.words = p.words[1:]
	}
	return w
}

// choice reads alternatives up to what ends them, and leaves out those of the other dialect. One
// that has none left is nothing.
func (p *parser) choice() (c choice) {
	for {
		a := &alternative{}
		for p.sequenceGoesOn() {
			switch w := p.next(); w {
			case "mariadb?", "mysql?":
				a.dialect = strings.TrimSuffix(w, "?")
			case "rows?":
				a.varies = true
			default:
				a.sequence = append(a.sequence, p.node(w))
			}
		}
		if a.dialect == "" || a.dialect == p.dialect {
			c.alternatives = append(c.alternatives, a)
		}
		if p.peek() != "|" {
			return c
		}
		p.next()
	}
}

func (p *parser) sequenceGoesOn() bool {
	switch p.peek() {
	case "|", ";", ")", "]", "}", ")*", "]*", "}*":
		return false
	}
	return true
}

// node reads what begins with w.
func (p *parser) node(w string) (n node) {
	switch {
	case w == "(":
		n = p.group()
	case w == "[":
		n = optional{p.group()}
	case w == "{":
		n = list{p.group()}
	case w[0] == '\'' || w[0] == '"':
		return literal(w[1 : len(w)-1])
	case w[0] == '@' && w != "@":
		n = lexeme(strings.TrimSuffix(w[1:], "*"))
	case 'a' <= w[0] && w[0] <= 'z' && strings.Trim(strings.TrimSuffix(w, "*"), "abcdefghijklmnopqrstuvwxyz_") == "":
		n = name(strings.TrimSuffix(w, "*"))
	default:
		return literal(w)
	}
	if strings.HasSuffix(w, "*") {
		return several{n}
	}
	return n
}

// group reads up to the closing bracket.
func (p *parser) group() node {
	c := p.choice()
	if strings.HasSuffix(p.next(), "*") {
		return several{c}
	}
	return c
}

// cost finds the fewest words that each alternative takes. Words in lower case without a production
// stand for themselves.
func cost(rules map[name]*choice) error {
	const never = 1 << 20
	costs := map[name]int{}
	for rule := range rules {
		costs[rule] = never
	}
	var of func(n node) int
	ofChoice := func(c choice) int {
		if len(c.alternatives) == 0 {
			return 0
		}
		least := never
		for _, a := range c.alternatives {
			a.cost = 0
			for _, n := range a.sequence {
				a.cost += of(n)
			}
			least = min(least, a.cost)
		}
		return least
	}
	of = func(n node) int {
		switch n := n.(type) {
		case optional, several:
			of(inner(n))
			return 0
		case list:
			return of(n.node)
		case choice:
			return ofChoice(n)
		case name:
			if _, ok := rules[n]; ok {
				return costs[n]
			}
		}
		return 1
	}
	for changed := true; changed; {
		changed = false
		for rule, c := range rules {
			if n := min(ofChoice(*c), never); n != costs[rule] {
				costs[rule], changed = n, true
			}
		}
	}
	for rule, n := range costs {
		if n == never {
			return fmt.Errorf("production %s never ends", rule)
		}
	}
	return nil
}

// inner is what an optional part or a repetition consists of.
func inner(n node) node {
	switch n := n.(type) {
	case optional:
		return n.node
	case several:
		return n.node
	}
	return n
}
