package proxy

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

// mayInsert reports whether a statement that such a text prepared may insert into a
// table with a rule.
func (p *passedNames) mayInsert(rules *rule.List) bool {
	return p.lost && p.by != rules || len(p.texts) > 0 && rules.MayName(p.texts)
}

func (p *passedNames) add(text []byte, by *rule.List) {
	switch {
	case bytes.Contains(p.texts, text): // sent again
	case len(p.texts)+len(text) >= maxPassed:
		p.lose(by)
	default:
		p.texts = append(append(p.texts, text...), '\n')
	}
}

// lose notes that a text is not kept.
func (p *passedNames) lose(by *rule.List) {
	if !p.lost {
		p.lost, p.by = true, by
	}
}
