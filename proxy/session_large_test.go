package proxy

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/go-mysql-org/go-mysql/mysql"

	"idproxy/idsource"
	"idproxy/proxy/wire"
)

// Statements far larger than the buffers are filled, and everything around
// them keeps its order.
func TestSessionLarge(t *testing.T) {
	r := start(t, func(_ *Config, live *Settings) { live.Statement = 40 << 20 })
	c := r.client()
	value := strings.Repeat("v", 300<<10)
	big := "INSERT INTO orders (a) VALUES ('" + value + "')"
	small := "UPDATE t SET a = '" + value + "'"
	go c.conn.Write(bytes.Join([][]byte{query(big), query(small), query(big)}, nil)) // a failure shows in what is read
	for i, want := range []uint64{100, 0, 101} {
		if id := insertIDOf(t, c.read()); id != want {
			t.Errorf("reply %d: insert id %d; want %d", i, id, want)
		}
	}
	got := slices.DeleteFunc(r.server.queries(), func(sql string) bool { return sql == "SELECT LAST_INSERT_ID()" })
	want := []string{
		strings.Replace(strings.Replace(big, "(a)", "(a,`id`)", 1), "')", "',LAST_INSERT_ID(100))", 1), small,
		strings.Replace(strings.Replace(big, "(a)", "(a,`id`)", 1), "')", "',LAST_INSERT_ID(101))", 1),
	}
	if !slices.Equal(got, want) {
		t.Errorf("the server saw %.60q of %d texts", got, len(got))
	}
}

// An INSERT that its ids push over a frame takes one more, and the reply's
// sequence numbers are still what the client expects.
func TestSessionGrowsByAFrame(t *testing.T) {
	r := start(t, func(_ *Config, live *Settings) { live.Statement = 40 << 20 })
	c := r.client()
	sql := "INSERT INTO orders (a) VALUES ('" + strings.Repeat("v", wire.MaxPayload-40) + "')"
	go c.conn.Write(query(sql)) // a failure shows in what is read
	payload, seq, err := wire.ReadPacket(c.conn, 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	// The fake server's max_allowed_packet is 16 MiB: the ids go over it.
	c.wantError(payload, mysql.ER_NET_PACKET_TOO_LARGE, "max_allowed_packet")
	if seq != 1 {
		t.Errorf("sequence number %d; want 1", seq)
	}
	r.server.set(func(f *fakeServer) { f.maxPacket = "\x0867108864" })
	c = r.client()
	go c.conn.Write(query(sql)) // a failure shows in what is read
	payload, seq, err = wire.ReadPacket(c.conn, 1<<20)
	if err != nil || seq != 1 || insertIDOf(t, payload) != 101 {
		t.Errorf("got %.60q with sequence number %d, %v", payload, seq, err)
	}
	if got := r.server.queries(); len(got) != 1 || len(got[0]) < wire.MaxPayload {
		t.Errorf("the server saw %d texts", len(got))
	}
}

// A text that depends on what is pending waits for it.
func TestSessionWaits(t *testing.T) {
	r := start(t, nil)
	c := r.client()
	c.write(append(query("UPDATE t SET a = 1"), query("INSERT INTO orders (a) VALUES (1); INSERT INTO orders (a) VALUES (2)")...))
	c.read()
	if id := insertIDOf(t, c.read()); id != 100 {
		t.Errorf("insert id %d; want 100", id)
	}
	if got := r.server.queries(); len(got) != 2 || !strings.Contains(got[1], "LAST_INSERT_ID(100)") || !strings.Contains(got[1], "LAST_INSERT_ID(101)") {
		t.Errorf("the server saw %q", got)
	}
}

// failing is a source whose Admit refuses, or whose ids are too large.
type failing struct {
	numbers
	refuse error
	first  uint64
}

func (f failing) Fill(_ context.Context, ids []uint64, _ uint64) error {
	for i := range ids {
		ids[i] = f.first + uint64(i)
	}
	return nil
}

func (f failing) Admit(context.Context, string, uint64) error { return f.refuse }

func (f failing) Advance(context.Context, uint64) error { return f.refuse }

func (f failing) Series(string, string) (idsource.Series, error) { return f, nil }

func TestSourceRefused(t *testing.T) {
	for name, tt := range map[string]struct {
		source idsource.Source
		says   string
	}{
		"behind":  {source: failing{refuse: errors.New("stands at 5, and MAX is 99")}, says: "MAX is 99"},
		"large":   {source: failing{first: 1 << 63}, says: "holds at most 9223372036854775807"},
		"missing": {says: "no source s"},
	} {
		t.Run(name, func(t *testing.T) {
			r := start(t, func(_ *Config, live *Settings) {
				live.Sources = map[string]idsource.Source{}
				if tt.source != nil {
					live.Sources["s"] = tt.source
				}
			})
			c := r.client()
			c.wantError(c.query("INSERT INTO orders (a) VALUES (1)"), mysql.ER_AUTOINC_READ_FAILED, tt.says)
			if got := r.server.queries(); len(got) != 0 {
				t.Errorf("the server saw %q", got)
			}
		})
	}
}
