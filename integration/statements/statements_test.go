package statements

import (
	"fmt"
	"testing"

	"idproxy/integration/assert"
)

// TestEveryAlternative: a corpus of the size that tests use has all of the grammar in it.
func TestEveryAlternative(t *testing.T) {
	for _, dialect := range []string{MariaDB, MySQL} {
		g := assert.Of(New(dialect, 1)).Must(t)
		for range 200 {
			g.Session(50)
		}
		unused := g.Unused()
		assert.True(t, unused == nil, "%s: %d alternatives never used, %q", dialect, len(unused), unused)
	}
}

// TestSameSeed: a seed names a corpus.
func TestSameSeed(t *testing.T) {
	var texts [3]string
	for i, seed := range []uint64{1, 1, 2} {
		g := assert.Of(New(MySQL, seed)).Must(t)
		texts[i] = fmt.Sprint(g.Session(100))
	}
	assert.True(t, texts[0] == texts[1] && texts[0] != texts[2], "equal seeds give other statements, or other seeds the same")
}

func TestMalformedGrammar(t *testing.T) {
	for _, text := range []string{"a: A ; a: B ;", "a: a ;", "a: b ; b: X a ;", "a: A ) ;"} {
		assert.Of(parse(text, MySQL)).Fails(t, fmt.Sprintf("%q is a grammar", text), "")
	}
}
