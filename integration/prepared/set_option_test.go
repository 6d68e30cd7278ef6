package prepared

import (
	"fmt"
	"testing"

	"github.com/go-mysql-org/go-mysql/mysql"

	"idproxy/integration/assert"
	"idproxy/integration/harness"
	"idproxy/integration/servers"
	"idproxy/integration/wireclient"
)

// TestSetOption turns the splitting of texts on and off: what the server refuses changes nothing,
// and a text that is sent before the reply is cut where the server cuts it.
func TestSetOption(t *testing.T) {
	harness.EachServer(t, func(t *testing.T, server *servers.Server) {
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
					assert.MustTrue(t, err == nil && (p[0] == mysql.ERR_HEADER) == (tt.err != 0) && (tt.err == 0 || wireclient.ParseERR(p).Code == tt.err), "option %d: %v, %q", tt.option, err, p)
				}
				assert.Must(t, s.Send(mysql.COM_SET_OPTION, []byte{tt.option, 0}))
				if waits {
					option()
				}
				assert.Must(t, s.Send(mysql.COM_QUERY, []byte("DO 1; INSERT INTO orders (a) VALUES ('x')")))
				if !waits {
					s.Conn.ResetSequence()
					s.Conn.Sequence = 1 // of a reply
					option()
					s.Conn.ResetSequence()
					s.Conn.Sequence = 1
				}
				r := assert.Of(s.Results()).Must(t)
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
				assert.Equal(t, fmt.Sprintf("behind option %d, waited for %t", tt.option, waits), got, want)
			}
		}
	})
}
