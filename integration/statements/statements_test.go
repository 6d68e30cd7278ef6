package statements

import (
	"fmt"
	"testing"
)

// TestEveryAlternative: a corpus of the size that tests use has all of the grammar in it.
func TestEveryAlternative(t *testing.T) {
	for _, dialect := range []string{MariaDB, MySQL} {
		g, err := New(dialect, 1)
		if err != nil {
			t.Fatal(err)
		}
		for range 200 {
			g.Session(50)
		}
		if unused := g.Unused(); unused != nil {
			t.Errorf("%s: %d alternatives never used, %q", dialect, len(unused), unused)
		}
	}
}

// TestSameSeed: a seed names a corpus.
func TestSameSeed(t *testing.T) {
	var texts [3]string
	for i, seed := range []uint64{1, 1, 2} {
		g, err := New(MySQL, seed)
		if err != nil {
			t.Fatal(err)
		}
		texts[i] = fmt.Sprint(g.Session(100))
	}
	if texts[0] != texts[1] || texts[0] == texts[2] {
		t.Error("equal seeds give other statements, or other seeds the same")
	}
}

func TestMalformedGrammar(t *testing.T) {
	for _, text := range []string{"a: A ; a: B ;", "a: a ;", "a: b ; b: X a ;", "a: A ) ;"} {
		if _, err := parse(text, MySQL); err == nil {
			t.Errorf("%q is a grammar", text)
		}
	}
}
