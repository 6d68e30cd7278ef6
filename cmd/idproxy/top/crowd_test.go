package top

import (
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gdamore/tcell/v2"

	"idproxy/integration/assert"
	"idproxy/monitor"
)

// crowd answers as an admin listener of a proxy with so many sessions does, of which each does a
// statement for every answer, but one that does a hundred.
type crowd struct {
	sessions, busiest int
	asked             atomic.Int64
}

// ServeHTTP implements http.Handler.
func (c *crowd) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	n := uint64(c.asked.Add(1))
	var answer any = at(int(n), n, Listeners).State
	if r.URL.Path == "/api/v1/sessions" {
		all := make([]monitor.Session, c.sessions)
		for i := range all {
			client, user := fmt.Sprintf("10.0.%d.%d:4711", i/256, i%256), fmt.Sprintf("app%d", i+1)
			all[i] = monitor.Session{ID: uint64(i + 1), Listener: "shard0", Client: client, User: user, State: "idle", Started: started, Statements: n}
		}
		all[c.busiest].Statements = 100 * n
		answer = all
	}
	_ = json.NewEncoder(w).Encode(answer) // who has gone reads nothing
}

// TestCrowd shows five thousand sessions: the busiest first, no more than a thousand, and
// any other one by a filter. It keeps no more memory after many answers than after a few.
func TestCrowd(t *testing.T) {
	c := &crowd{sessions: 5000, busiest: 4320}
	server := httptest.NewServer(c)
	defer server.Close()
	s := show(t, t.Context(), monitor.NewClient("tcp", server.Listener.Addr().String(), "", nil))
	s.press("4")
	s.until("the first 1000 of 5000 rows, / filters; ready at", "4321 app4321")
	// The first is below three lines of the head, the tabs and the names of columns.
	first := func() bool { return strings.HasPrefix(strings.Split(s.text(), "\n")[5], "4321 app4321") }
	assert.Until(t, "the busiest session is the first", first, s.text)
	// The least of three: an answer that is being read is held, too.
	held := func(answers int64) uint64 {
		least := uint64(math.MaxUint64)
		for range 3 {
			for until := c.asked.Load() + answers; c.asked.Load() < until; time.Sleep(time.Millisecond) {
			}
			runtime.GC()
			var m runtime.MemStats
			runtime.ReadMemStats(&m)
			least, answers = min(least, m.HeapAlloc), 1
		}
		return least
	}
	few, many := held(3), held(10)
	t.Logf("%d KiB after a few answers, %d KiB after many", few>>10, many>>10)
	assert.True(t, many <= few+4<<20, "%d bytes are held after many answers, %d after a few", many, few) // ten answers take more than that
	s.press("/app4999")
	s.until("4999 app4999", "10.0.19.134:4711")
	assert.True(t, !strings.Contains(s.text(), "of 5000 rows"), "rows are said to be left out:\n%s", s.text())
	s.hit(tcell.KeyEnter)
	s.press("q")
	s.end()
}
