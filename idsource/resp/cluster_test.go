package resp

import (
	"context"
	"fmt"
	"net"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/redis/go-redis/v9"

	"idproxy/idsource/access"
	"idproxy/integration/assert"
)

// distant is a source that another process is asked for.
type distant struct {
	ranges
	asked atomic.Int64
	here  bool
}

func (d *distant) Distant() bool { return !d.here }

func (d *distant) Range(ctx context.Context, n uint64) (uint64, error) {
	d.asked.Add(1)
	return d.ranges.Range(ctx, n)
}

func (d *distant) Fill(ctx context.Context, ids []uint64, stride uint64) error {
	d.asked.Add(1)
	return d.ranges.Fill(ctx, ids, stride)
}

// TestTogether: INCRs that a client sends one after the other are drawn at once where that saves
// waiting, and are answered as if they were not.
func TestTogether(t *testing.T) {
	for _, here := range []bool{false, true} {
		src := &distant{ranges: ranges{counter{next: 1}}, here: here}
		addr, _ := newServer(t, map[string]Source{"k": src, "other": &counter{next: 500}},
			access.User{Name: "default", Secret: access.DigestOf("x"), Most: 40}, access.User{Name: "blind", Secret: access.DigestOf("x"), Keys: []string{"no"}})
		incr := "*2\r\n$4\r\nincr\r\n$1\r\nk\r\n"
		text := "*2\r\n$4\r\nAUTH\r\n$1\r\nx\r\n" + strings.Repeat(incr, 100) + "INCR other\r\n" + strings.Repeat(incr, 2) + "INCRBY k 3\r\nGET k\r\n"
		want := "+OK\r\n"
		for id := range 100 {
			want += fmt.Sprintf(":%d\r\n", id+1)
		}
		want += ":500\r\n:101\r\n:102\r\n:105\r\n$3\r\n105\r\n"
		assert.Equal(t, fmt.Sprintf("here %v", here), talk(t, addr, text), want)
		n := src.asked.Load()
		assert.True(t, (!here || n == 103) && (here || n <= 20), "here %v: the source was asked %d times", here, n)
		denied := talk(t, addr, "AUTH blind x\r\n"+strings.Repeat(incr, 3))
		assert.True(t, strings.Count(denied, "NOPERM") == 3, "here %v: without the right: %q", here, denied)
	}
}

// elsewhere is a source of which another server gives ids.
type elsewhere struct {
	counter
	to string // empty: this one does
}

type movedError struct{ to string }

func (e *movedError) Error() string   { return "moved" }
func (e *movedError) MovedTo() string { return e.to }

func (e *elsewhere) Fill(ctx context.Context, ids []uint64, stride uint64) error {
	if e.to != "here" {
		return &movedError{e.to}
	}
	return e.counter.Fill(ctx, ids, stride)
}

// TestSlots compares with the slots that Redis's own documentation names.
// https://redis.io/docs/latest/operate/oss_and_stack/reference/cluster-spec/
func TestSlots(t *testing.T) {
	for key, want := range map[string]int{
		"123456789": 0x31c3, "foo": 12182, "bar": 5061, "{foo}.x": 12182, "x{foo}": 12182, "": 0,
		"foo{}{bar}": slotOf("foo{}{bar}"), "foo{bar}{zap}": 5061,
	} {
		assert.Equal(t, fmt.Sprintf("slot of %q", key), slotOf(key), want)
	}
	assert.True(t, slotOf("foo{}{bar}") != slotOf("bar"), "empty braces count")
}

// TestCluster: a client of a cluster that is given the address of a server that gives no ids finds the
// one that does, by what CLUSTER SLOTS says and by MOVED.
func TestCluster(t *testing.T) {
	var to atomic.Pointer[string]
	leader := func() string { return *to.Load() }
	none := ""
	to.Store(&none)
	gives := &elsewhere{counter: counter{next: 1}, to: "here"}
	first, _ := serve(t, Config{Cluster: leader, Members: []string{"[::1]:7"}, Lookup: func(string) (Source, bool) { return gives, true }})
	asked := &elsewhere{}
	second, _ := serve(t, Config{Cluster: leader, Members: []string{first, "[::1]:7"}, Lookup: func(string) (Source, bool) { return asked, true }})
	for _, tt := range []struct{ in, want string }{
		{"INCR foo\r\n", "-CLUSTERDOWN no process gives ids of key 'foo' at the moment\r\n"},
		{"CLUSTER SLOTS\r\nCLUSTER SHARDS\r\n", "*0\r\n*0\r\n"},
		{"CLUSTER KEYSLOT foo\r\nREADONLY\r\n", ":12182\r\n+OK\r\n"},
		{"CLUSTER FORGET x\r\n", "-ERR unknown subcommand or wrong number of arguments for 'FORGET'\r\n"},
	} {
		assert.Equal(t, fmt.Sprintf("nobody gives ids, %q", tt.in), talk(t, second, tt.in), tt.want)
	}
	to.Store(&first)
	asked.to = first
	host, port, _ := net.SplitHostPort(first)
	n, _ := nodeOf(first)
	other, _ := nodeOf("[::1]:7")
	for _, tt := range []struct{ in, want string }{
		{"INCR foo\r\nINCRBY foo 2\r\nIDS.NEXT foo\r\n", strings.Repeat("-MOVED 12182 "+first+"\r\n", 3)},
		{"CLUSTER SLOTS\r\n", fmt.Sprintf("*1\r\n*4\r\n:0\r\n:16383\r\n*4\r\n$%d\r\n%s\r\n:%s\r\n$40\r\n%s\r\n*0\r\n"+
			"*4\r\n$3\r\n::1\r\n:7\r\n$40\r\n%s\r\n*0\r\n", len(host), host, port, n.id, other.id)},
	} {
		assert.Equal(t, tt.in, talk(t, second, tt.in), tt.want)
	}
	c := redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{second}})
	defer c.Close() //nolint:errcheck // nothing is pending
	for want := int64(1); want < 5; want++ {
		assert.Of(c.Incr(t.Context(), "foo").Result()).Equal(t, "INCR of a cluster's client", want)
	}
	shards, err := c.ClusterShards(t.Context()).Result()
	if err != nil || len(shards) != 1 || len(shards[0].Nodes) != 2 || shards[0].Nodes[1].Role != "replica" || shards[0].Nodes[0].IP != host || shards[0].Slots[0].End != slots-1 {
		t.Errorf("CLUSTER SHARDS: %+v, %v", shards, err)
	}
	alone, _ := newServer(t, map[string]Source{})
	assert.True(t, strings.HasPrefix(talk(t, alone, "CLUSTER SLOTS\r\n"), "-ERR unknown command"), "a server that is no cluster answers CLUSTER")
}
