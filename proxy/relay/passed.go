package relay

import (
	"bytes"

	"idproxy/rule"
)

// passedNames is what is kept of texts that went to the server unread and may have
// prepared statements by name: no rule concerned them then, but a reload may bring one.
type passedNames struct {
	texts []byte
	// lost says that some are not kept, and by are the rules that did not concern those.
	lost bool
	by   *rule.List
}

// maxPassed bounds the texts that a session keeps so, in bytes.
const maxPassed = 64 << 10

// MayInsert reports whether a statement that such a text prepared may insert into a
// table with a rule.
func (p *passedNames) MayInsert(rules *rule.List) bool {
	return p.lost && p.by != rules || len(p.texts) > 0 && rules.MayName(p.texts)
}

// Add keeps a text, or notes that it is not kept.
func (p *passedNames) Add(text []byte, by *rule.List) {
	switch {
	case bytes.Contains(p.texts, text): // sent again
	case len(p.texts)+len(text) >= maxPassed:
		p.Lose(by)
	default:
		p.texts = append(append(p.texts, text...), '\n')
	}
}

// Lose notes that a text is not kept.
func (p *passedNames) Lose(by *rule.List) {
	if !p.lost {
		p.lost, p.by = true, by
	}
}
