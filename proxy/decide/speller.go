package decide

import (
	"idproxy/proxy/catalog"
	"idproxy/rewriter"
)

// speller knows names in the character set of a text that is decided on.
type speller struct {
	names   *catalog.Spellings
	charset string
	known   bool // the character set is
	barrier bool // statements in front may change it
}

// Spell implements rewriter.Speller; a name that is to be asked for is a need.
func (s *speller) Spell(name string) (string, error) {
	n := catalog.Spelling{Name: name, Charset: s.charset, Back: true}
	switch {
	case s.known && catalog.IsUTF8(s.charset):
		return name, nil
	case s.barrier:
		return "", errCut
	case !s.known:
		return "", NeedProbe{}
	}
	written, ok := s.names.Get(n)
	switch {
	case !ok:
		return "", NeedName{Name: n}
	case written == catalog.Unreadable:
		return "", &rewriter.Unsupported{Form: "column " + name + ", which the session's character set does not have"}
	}
	return written, nil
}
