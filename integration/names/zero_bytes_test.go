package names

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"idproxy/integration/assert"
	"idproxy/integration/harness"
	"idproxy/integration/pair"
	"idproxy/integration/servers"
	"idproxy/integration/wireclient"
)

// zeroPieces are statements that texts with zero bytes are made of. The last one is not filled.
var zeroPieces = []string{
	"DELETE FROM other", "INSERT INTO other VALUES (1), (2)", "INSERT INTO ruled (k) VALUES (7)", "INSERT INTO ruled (id, k) VALUES (NULL, 'a;b')", "SET @a = 1", "SET sql_mode = ''", "SELECT 1 -- x\n", "SELECT 'a;b' # y\n",
	"UPDATE other SET a = 3 /* ; */", "/*!50000 SELECT 5 */", "CREATE TEMPORARY TABLE IF NOT EXISTS own (a INT)", "INSERT INTO ruled (k) SELECT 5+SLEEP(0)",
}

// zeroTexts are texts with zero bytes whose reading was seen to differ.
var zeroTexts = []string{
	"DELETE FROM other\x00; INSERT INTO ruled (k) SELECT 5+SLEEP(0)", "DELETE FROM other\x00; INSERT INTO ruled (k) VALUES (7)", "DELETE FROM other\x00", "DELETE FROM other\x00; ; ", "DELETE FROM other;\x00", "DELETE FROM other;\x00 x", "INSERT INTO ruled (k) VALUES (7)\x00",
	"INSERT INTO ruled (k) VALUES (7)\x00 ;", "INSERT INTO ruled (k) VALUES (7)\x00\x00", "INSERT INTO ruled (k) VALUES (7);\x00INSERT INTO ruled (k) VALUES (8)", "INSERT INTO ruled (k) VALUES ('\x00'); INSERT INTO ruled (k) VALUES (8)", "INSERT INTO ruled (k) VALUES (7) -- \x00",
	"INSERT INTO ruled (k) VALUES (7) -- \x00; INSERT INTO ruled (k) VALUES (8)", "SELECT 1 # \x00\n; INSERT INTO ruled (k) VALUES (8)", "SELECT 1 /* \x00; */; INSERT INTO ruled (k) VALUES (8)", "\x00", "\x00;INSERT INTO ruled (k) VALUES (8)", "SELECT `a\x00b`; INSERT INTO ruled (k) VALUES (8)",
}

// TestZeroBytes holds that texts with zero bytes do what they do natively: no statement runs that
// would not, and none is left out.
func TestZeroBytes(t *testing.T) {
	t.Parallel()
	harness.EachServer(t, func(t *testing.T, server *servers.Server) {
		t.Parallel()
		w := pair.New(t, server, "[{table: DB.ruled, column: id, source: ids}]",
			"CREATE TABLE ruled (id BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY, k VARCHAR(9))", "CREATE TABLE other (a INT)")
		direct := wireclient.Open(t, server.Addr, w.DB)
		random := rand.New(rand.NewPCG(14, 0))
		texts := append([]string(nil), zeroTexts...)
		for range 400 {
			texts = append(texts, withZeros(random))
		}
		for _, text := range texts {
			var got [2][]wireclient.Reply
			var stored [2]string
			for i, addr := range []string{server.Addr, w.Addr} {
				direct.Must(t, "DELETE FROM ruled", "DELETE FROM other", "INSERT INTO other VALUES (9)")
				s := wireclient.Open(t, addr, w.DB)
				replies := assert.Of(s.Query(text)).Must(t, text)
				got[i], stored[i] = replies, direct.Value(t, "SELECT GROUP_CONCAT(k) FROM ruled")+" "+direct.Value(t, "SELECT GROUP_CONCAT(a ORDER BY a) FROM other")
				s.Close()
			}
			shows, natively := zeroShown(got[1], stored[1]), zeroShown(got[0], stored[0])
			assert.True(t, shows == natively || refusedWhereRun(got), "%q\nshows    %s\nnatively %s", text, shows, natively)
		}
	})
}

// zeroShown is what a text did, but for ids: also those that a text quotes which got them.
func zeroShown(replies []wireclient.Reply, stored string) string {
	out := ""
	for _, r := range replies {
		if r.Err != nil && strings.Contains(r.Err.Message, "LAST_INSERT_ID(") {
			r.Err.Message = ""
		}
		out += fmt.Sprintf("%v %d %v; ", r.Err, r.Affected, r.Rows)
	}
	return out + stored
}

// refusedWhereRun reports whether idproxy refused a form that is not filled and that the server
// ran, behind the same replies.
func refusedWhereRun(got [2][]wireclient.Reply) bool {
	last := len(got[1]) - 1
	return got[1][last].Err != nil && got[1][last].Err.Code == 1235 && last < len(got[0]) && got[0][last].Err == nil &&
		zeroShown(got[0][:last], "") == zeroShown(got[1][:last], "")
}

// withZeros is a text of some statements, with zero bytes where it matters.
func withZeros(random *rand.Rand) string {
	var b strings.Builder
	for n := 1 + random.IntN(4); n > 0; n-- {
		b.WriteString(zeroPieces[random.IntN(len(zeroPieces))])
		b.WriteString([]string{"", "", " ", "\x00", " \x00 ", "\x00\x00", " -- \x00", "\x00 -- x\n"}[random.IntN(8)])
		b.WriteString([]string{";", ";", ";", "; ", ";\x00", ";; "}[random.IntN(6)])
	}
	text := b.String()
	if random.IntN(2) == 0 {
		text = strings.TrimRight(text, "; ")
	}
	if random.IntN(2) == 0 {
		at := random.IntN(len(text) + 1)
		text = text[:at] + "\x00" + text[at:]
	}
	return text
}
