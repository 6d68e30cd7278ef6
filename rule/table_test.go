package rule

import (
	"fmt"
	"testing"

	"idproxy/ascii"
	"idproxy/integration/assert"
	"idproxy/pattern"
)

// FuzzSameColumn: the short way says what the long one does.
func FuzzSameColumn(f *testing.F) {
	for _, names := range [][2]string{{"id", "ID"}, {"id", "i"}, {"a_b", "A\x7fB"}, {"\u00e9", "\u00c9"}, {"k", "\u212a"}, {"\u212a", "k"}, {"x\u00e9y", "x\u00e9Y"}, {"@", "`"}} {
		f.Add(names[0], names[1])
	}
	f.Fuzz(func(t *testing.T, a, b string) {
		want := ascii.EqualFold(a, b) || !ascii.ValidString(a) && pattern.Fold(a) == pattern.Fold(b)
		assert.Equal(t, fmt.Sprintf("SameColumn(%q, %q)", a, b), SameColumn(a, b), want)
	})
}
