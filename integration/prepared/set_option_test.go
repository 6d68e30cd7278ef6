package prepared

import (
	"fmt"
	"testing"

	"github.com/go-mysql-org/go-mysql/mysql"

	"idproxy/integration/harness"
	"idproxy/integration/wireclient"
)

// TestSetOption turns the splitting of texts on and off: what the server refuses changes nothing,
// and a text that is sent before the reply is cut where the server cuts it.
func TestSetOption(t *testing.T) {
	for _, server := range harness.Servers(t) {
		t.Run(server.Kind.String(), func(t *testing.T) {
			w := openPrepared(t, server)
			s := wireclient.Open(t, w.addr, w.db)
			next := uint64(1000)
			for _, tt := range []struct {
				option byte
				err    uint16
				multi  bool
			}{{2, mysql.ER_UNKNOWN_COM_ERROR, true}, {1, 0, false}, {7, mysql.ER_UNKNOWN_COM_ERROR, false}, {0, 0, true}} {
				for _, waits := range []bool{true, false} {
					option := func() {
						p, err := s.Conn.ReadPacket()
						if err != nil || (p[0] == mysql.ERR_HEADER) != (tt.err != 0) || tt.err != 0 && wireclient.ParseERR(p).Code != tt.err {
							t.Fatalf("option %d: %v, %q", tt.option, err, p)
						}
					}
					if err := s.Send(mysql.COM_SET_OPTION, []byte{tt.option, 0}); err != nil {
						t.Fatal(err)
					}
					if waits {
						option()
					}
					if err := s.Send(mysql.COM_QUERY, []byte("DO 1; INSERT INTO orders (a) VALUES ('x')")); err != nil {
						t.Fatal(err)
					}
					if !waits {
						s.Conn.ResetSequence()
						s.Conn.Sequence = 1 // of a reply
						option()
						s.Conn.ResetSequence()
						s.Conn.Sequence = 1
					}
					r, err := s.Results()
					if err != nil {
						t.Fatal(err)
					}
					got := fmt.Sprintf("%d results", len(r))
					if r[0].Err != nil {
						got = r[0].Err.Error()[:10]
					} else if len(r) == 2 && r[1].Err == nil {
						got = fmt.Sprint(r[1].InsertID)
					}
					want := "ERROR 1064"
					if tt.multi {
						want = fmt.Sprint(next)
						next++
					}
					if got != want {
						t.Errorf("behind option %d, waited for %t: %s, want %s", tt.option, waits, got, want)
					}
				}
			}
		})
	}
}
