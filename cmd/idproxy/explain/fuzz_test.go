package explain

import (
	"bytes"
	"strings"
	"testing"

	"idproxy/config"
	"idproxy/integration/assert"
	"idproxy/integration/harness"
	"idproxy/rewriter"
)

// FuzzExplain holds that no text makes explain crash, and that a statement
// which is filled loses no byte: what the application wrote is a subsequence
// of what is sent, but for the ids that were asked for.
func FuzzExplain(f *testing.F) {
	for _, sql := range []string{
		"INSERT INTO shop.orders (a) VALUES ('x'),(\"y\\\"\"),(`z`)", "USE shop; REPLACE orders (id,a) VALUES (NULL,';')",
		"insert into shop.log_1 (a) values (last_insert_id()) -- x", "BEGIN NOT ATOMIC INSERT INTO shop.orders VALUES (1); END",
		"/*!50000 INSERT */ INTO shop.orders (a) VALUES (1)", "PREPARE s FROM 'INSERT'", "INSERT INTO shop.orders (\x00", "$$", ";;",
	} {
		f.Add([]byte(sql))
	}
	cfg := assert.Of(config.Load("testdata/rules.yaml")).Must(f)
	f.Fuzz(func(t *testing.T, text []byte) {
		given := bytes.Clone(text)
		all := assert.Of(newSession(t.Context(), cfg, &cfg.Listeners[0], Options{Schema: "shop", Verbose: true}).explain(text)).Must(t)
		assert.MustTrue(t, bytes.Equal(given, text), "the text was changed")
		for _, one := range all {
			if one.Becomes != Filled || len(one.Notes) > 0 && strings.HasPrefix(one.Notes[0], "the server is asked") { // an id stands for an expression, as long as that is
				continue
			}
			lost := lostByte([]byte(one.Statement), []byte(one.Sent))
			assert.MustTrue(t, lost < 0, "byte %d of %q is not in %q", lost, one.Statement, one.Sent)
		}
	})
}

// replaced are the bytes of the values that an id stands for: NULL, DEFAULT, 0
// and '0'. All others must be there still.
const replaced = "NULLnullDEFAULTdefault0'"

// lostByte returns the index of the first byte of sql, but for replaced ones,
// that is not found in sent behind those before it; -1 when none is lost.
// Where LAST_INSERT_ID is read, values change their places.
func lostByte(sql, sent []byte) int {
	if rewriter.MentionsLastID(sql) {
		return -1
	}
	for i, c := range sql {
		if strings.IndexByte(replaced, c) >= 0 {
			continue
		}
		at := bytes.IndexByte(sent, c)
		if at < 0 {
			return i
		}
		sent = sent[at+1:]
	}
	return -1
}

func TestLostByte(t *testing.T) {
	assert.Equal(t, "the lost byte of a kept text", lostByte([]byte("a (NULL, 'b')"), []byte("a (,`id`) (1, 'b');")), -1)
	assert.Equal(t, "the lost byte", lostByte([]byte("a (b, c)"), []byte("a (1, c);")), 3)
}

func TestMain(m *testing.M) { harness.Main(m) }
