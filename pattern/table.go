package pattern

import (
	"strings"
	"unicode/utf8"
)

// Table is a pattern of tables. In both parts * stands for any characters and ? for one.
type Table struct{ Schema, Name string }

// Exact reports whether the pattern names one table, without wildcards.
func (t Table) Exact() bool { return !wild(t.Schema) && !wild(t.Name) }

func wild(part string) bool { return strings.ContainsAny(part, "*?") }

// Match reports whether a table is meant. fold compares without regard to case.
func (t Table) Match(schema, name string, fold bool) bool {
	return Match(t.Name, name, fold) && Match(t.Schema, schema, fold)
}

// Match matches one name against one part of a pattern.
func Match(part, name string, fold bool) bool {
	if fold {
		part, name = Fold(part), Fold(name)
	}
	star, again := -1, 0 // the last * and the place in name that it may have to swallow next
	p, n := 0, 0
	for n < len(name) {
		switch {
		case p < len(part) && part[p] == '*':
			star, again = p, n
			p++
		case p < len(part) && part[p] == '?':
			_, size := utf8.DecodeRuneInString(name[n:])
			p, n = p+1, n+size
		case p < len(part) && part[p] == name[n]:
			p, n = p+1, n+1
		case star >= 0:
			again++
			p, n = star+1, again
		default:
			return false
		}
	}
	return strings.Trim(part[p:], "*") == ""
}

// Covers reports whether every table that narrow matches is matched by t.
func (t Table) Covers(narrow Table) bool {
	return covers(t.Schema, narrow.Schema) && covers(t.Name, narrow.Name)
}

// covers runs the glob wide over the text of narrow, whose own * only a * of wide may
// take, and whose ? only a * or ?.
func covers(wide, narrow string) bool {
	star, mark := -1, 0 // the last * of wide, and how far of narrow it has taken
	w, n := 0, 0
	for n < len(narrow) {
		switch {
		case w < len(wide) && wide[w] == '*':
			star, mark = w, n
			w++
		case w < len(wide) && narrow[n] != '*' && (wide[w] == '?' || wide[w] == narrow[n]):
			w, n = w+1, n+1
		case star >= 0:
			mark++
			w, n = star+1, mark
		default:
			return false
		}
	}
	return strings.Trim(wide[w:], "*") == ""
}

// Overlaps reports whether some table is matched by both patterns.
func (t Table) Overlaps(other Table) bool {
	return overlap(t.Schema, other.Schema) && overlap(t.Name, other.Name)
}

// overlap walks all pairs of places in two globs that one name can reach.
func overlap(a, b string) bool {
	reached := make([]bool, len(b)+1) // places in b, for the place in a that the loop is at
	reached[0] = true
	for i := 0; i <= len(a); i++ {
		for j := range b { // a * of b stands for nothing, too
			reached[j+1] = reached[j+1] || reached[j] && b[j] == '*'
		}
		if i == len(a) {
			break
		}
		next := make([]bool, len(b)+1)
		for j, here := range reached {
			switch {
			case !here:
			case a[i] == '*':
				for k := j; k < len(next); k++ { // it takes whatever of b
					next[k] = true
				}
			case j < len(b) && b[j] == '*':
				next[j] = true // which takes the character of a
			case j < len(b) && (a[i] == '?' || b[j] == '?' || a[i] == b[j]):
				next[j+1] = true
			}
		}
		reached = next
	}
	return reached[len(b)]
}
