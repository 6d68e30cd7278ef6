package rewriter

import (
	"strings"
	"testing"

	"idproxy/integration/assert"
)

func TestKeyword(t *testing.T) {
	group := func(word string) keyword {
		s := scanner{text: []byte(word)}
		return s.keyword(s.next())
	}
	n := 0
	for _, k := range keywords {
		for word := range strings.FieldsSeq(k.words) {
			n++
			for _, as := range [...]string{word, strings.ToUpper(word), strings.ToUpper(word[:1]) + word[1:]} {
				assert.Equal(t, as, group(as), k.group)
			}
			for _, none := range [...]string{word + "_x", "x" + word, "`" + word + "`", word + ".x", word[:1]} {
				assert.Equal(t, none, group(none), kwNone)
			}
			other := []byte(word)
			other[len(other)/2] ^= 1 // a letter inside does not change the place of a word
			assert.Equal(t, string(other), group(string(other)), kwNone)
		}
	}
	t.Logf("%d keywords", n)
}

func TestHeadReading(t *testing.T) {
	text := []byte("INSERT INTO a VALUES (1)")
	ansi := Mode{ANSIQuotes: true}
	var r HeadReading
	read := func() string {
		h, _ := r.Read(text, Mode{})
		return string(h.Target.Table)
	}
	of := func(text []byte, m Mode) string {
		h, _ := r.Of(text, m)
		return string(h.Target.Table)
	}
	assert.MustTrue(t, read() == "a" && of(text, Mode{MultiStatements: true}) == "a", "the head is not that of the text")
	// The control: it is remembered, so that another text in the same memory is not seen.
	r.head.Target.Table = []byte("remembered")
	assert.MustEqual(t, "the text was read again", of(text, Mode{}), "remembered")
	for what, again := range map[string]func() string{
		"another mode":     func() string { return of(text, ansi) },
		"a shorter text":   func() string { return of(text[:len(text)-1], Mode{}) },
		"a copy":           func() string { return of([]byte(string(text)), Mode{}) },
		"a text of no one": func() string { return of(nil, Mode{}) + "a" },
	} {
		got := again()
		assert.True(t, got == "a", "%s: got table %s", what, got)
	}
	copy(text, "INSERT INTO b")
	r.Forget()
	got := of(text, Mode{})
	assert.True(t, got == "b", "behind Forget: got table %s", got)
	r.head.Target.Table = []byte("remembered")
	got = read()
	assert.True(t, got == "b", "Read: got table %s", got)
}
