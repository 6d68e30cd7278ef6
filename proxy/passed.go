package proxy

import (
	"bytes"

	"idproxy/rewriter"
)

// passedNames is what is kept of texts that went to the server unread and may have
// prepared statements by name: no rule concerned them then, but a reload may bring one.
type passedNames struct {
	texts []byte
	// lost says that some are not kept, and by are the rules that did not concern those.
	lost bool
	by   *rewriter.Rules
}

// maxPassed bounds the texts that a session keeps so, in bytes.
const maxPassed = 64 << 10

// mayInsert reports whether a statement that such a text prepared may insert into a
// table with a rule.
func (p *passedNames) mayInsert(rules *rewriter.Rules) bool {
	return p.lost && p.by != rules || len(p.texts) > 0 && rules.MayName(p.texts)
}

func (p *passedNames) add(text []byte, by *rewriter.Rules) {
	switch {
	case bytes.Contains(p.texts, text): // sent again
	case len(p.texts)+len(text) >= maxPassed:
		p.lose(by)
	default:
		p.texts = append(append(p.texts, text...), '\n')
	}
}

// lose notes that a text is not kept.
func (p *passedNames) lose(by *rewriter.Rules) {
	if !p.lost {
		p.lost, p.by = true, by
	}
}
