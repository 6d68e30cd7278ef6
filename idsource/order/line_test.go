package order

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"idproxy/idsource"
	"idproxy/idsource/resp"
	"idproxy/idsource/segment"
	"idproxy/inside"
	"idproxy/integration/assert"
)

// says is a leader that answers a command with what it returns; empty: it says nothing more.
type says func(words []string) string

// dial is how a Line reaches it.
func (s says) dial(context.Context, string) (net.Conn, error) {
	near, far := net.Pipe()
	go s.serve(far)
	return near, nil
}

func (s says) serve(c net.Conn) {
	defer c.Close() //nolint:errcheck // the other end may be gone
	r := bufio.NewReader(c)
	for {
		var n int
		if _, err := fmt.Fscanf(r, "*%d\r\n", &n); err != nil {
			return
		}
		words := make([]string, n)
		for i := range words {
			var size int
			if _, err := fmt.Fscanf(r, "$%d\r\n", &size); err != nil {
				return
			}
			word := make([]byte, size+2)
			if _, err := io.ReadFull(r, word); err != nil {
				return
			}
			words[i] = string(word[:size])
		}
		answer := s(words)
		if answer == "" {
			_, _ = io.Copy(io.Discard, r) // until the other end closes
			return
		}
		if _, err := io.WriteString(c, answer+"\r\n"); err != nil {
			return
		}
	}
}

// asks returns a source that asks such a leader, in its first term.
func (s says) asks(t *testing.T, c segment.Config) *Source {
	t.Helper()
	return newFollower(t, LineConfig{Dial: s.dial, Password: "secret"}, Leader{Token: "t", Addr: "10.0.0.5:9309"}, c)
}

// newFollower returns a source that takes a process for the leader.
func newFollower(t *testing.T, l LineConfig, leader Leader, c segment.Config) *Source {
	t.Helper()
	line := NewLine(l)
	t.Cleanup(line.Close)
	e := NewElection(ElectionConfig{Register: &memory{}})
	e.set(&State{Leader: leader, Number: 1})
	c.Name = "order_id"
	if c.Store == nil {
		c.Store = during{memory: &memory{next: 1}}
	}
	source := assert.Of(New(Config{Election: e, Line: line, Segment: c})).Must(t)
	t.Cleanup(func() { assert.NoError(t, source.Close(context.Background())) })
	return source
}

// TestAnswers: what a leader may answer, and what is none.
func TestAnswers(t *testing.T) {
	const done = 7 // stands for: it is one
	for _, a := range []struct {
		answer string
		span   uint64 // 0: IDS.SET
		first  uint64 // 0: it is none
	}{
		{":100", 1, 100},
		{":100", 3, 98},
		{":3", 3, 1},
		{":2", 3, 0},
		{":0", 1, 0},
		{":-1", 1, 0},
		{":9223372036854775807", 3, 9223372036854775805},
		{":9223372036854775808", 1, 0},
		{"+OK", 1, 0},
		{"+5", 1, 0},
		{"$1", 1, 0},
		{":", 1, 0},
		{"", 1, 0},
		{"+OK", 0, done},
		{"+NO", 0, 0},
		{":5", 0, 0},
	} {
		l := NewLine(LineConfig{Dial: says(func([]string) string {
			if a.answer == "" {
				return "\r\n"
			}
			return a.answer
		}).dial})
		var first uint64
		var err error
		if a.span == 0 {
			first, err = done, l.Set(t.Context(), Leader{Addr: "h:1"}, nil, "k", 5)
		} else {
			first, err = l.Draw(t.Context(), Leader{Addr: "h:1"}, nil, "k", a.span)
		}
		assert.True(t, (a.first != 0 || err != nil) && (a.first <= 0 || err == nil && first == a.first), "%q to a question for %d ids is %d, %v", a.answer, a.span, first, err)
		l.Close()
	}
}

// TestWrongIDs: ids that are not above those before, or above the greatest allowed, are not given, and
// change nothing.
func TestWrongIDs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var answer atomic.Value // empty: the right one
		answer.Store("")
		last := uint64(95)
		s := says(func(words []string) string {
			if words[0] == "AUTH" {
				return "+OK"
			}
			if wrong, ok := answer.Load().(string); ok && wrong != "" {
				return wrong
			}
			n, _ := strconv.ParseUint(words[2], 10, 64)
			return fmt.Sprintf(":%d", atomic.AddUint64(&last, n))
		}).asks(t, segment.Config{Last: 1000, Wait: func() time.Duration { return 200 * time.Millisecond }})
		first, err := s.Range(t.Context(), 5)
		assert.MustTrue(t, err == nil && first == 96, "Range: %d, %v", first, err)
		for _, wrong := range []string{":100", ":104", ":50", ":1001", ":9223372036854775807"} {
			answer.Store(wrong)
			first, err := s.Range(t.Context(), 5)
			assert.True(t, errors.Is(err, idsource.StoreDown) && strings.Contains(err.Error(), "gave ids"), "%s behind 100: %d, %v", wrong, first, err)
			answer.Store("")
			first, err = s.Range(t.Context(), 5)
			assert.True(t, err == nil && first > 100, "Range: %d, %v", first, err)
			time.Sleep(2 * tryPause)
		}
		time.Sleep(2 * idleTime) // connections end
	})
}

// TestAnotherLeader: a process that leads, and has the token of all, gives no ids to who takes it for
// another one. Clients are not told where it is.
func TestAnotherLeader(t *testing.T) { synctest.Test(t, testAnotherLeader) }

func testAnotherLeader(t *testing.T) {
	m := &memory{next: 1}
	other := newProcess(t, m, 0)
	for other.election.State().Own() == nil {
		time.Sleep(time.Millisecond)
	}
	at, wait := other.election.State().Leader, segment.Config{Wait: func() time.Duration { return 300 * time.Millisecond }}
	here := newFollower(t, LineConfig{Password: "secret", Dial: m.dial}, at, wait)
	assert.Of(here.Range(t.Context(), 1)).Equal(t, "of the leader", 1)
	for _, wrong := range []struct{ token, password string }{{"gone", "secret"}, {at.Token, "guessed"}} {
		s := newFollower(t, LineConfig{Password: wrong.password, Dial: m.dial}, Leader{Token: wrong.token, Addr: at.Addr}, wait)
		first, err := s.Range(t.Context(), 1)
		if !errors.Is(err, idsource.StoreDown) || !strings.Contains(err.Error(), at.Addr+": another process is there") {
			t.Errorf("%+v: %d, %v", wrong, first, err)
			continue
		}
		text, _ := inside.Text(err)
		assert.True(t, !strings.Contains(text, at.Addr) && !strings.Contains(text, "WRONGPASS"), "clients are told %s", text)
	}
	assert.Equal(t, "ids were given", other.Given(), 1)
}

// TestWhy: whoever asks a process that passes on is not told to ask another one, and the reason is that of
// the register where that does not answer.
func TestWhy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, answer := range []string{"-CLUSTERDOWN no process gives ids", "-MOVED 5 10.0.0.7:6379"} {
			s := says(func(words []string) string {
				if words[0] == "AUTH" {
					return "+OK"
				}
				return answer
			}).asks(t, segment.Config{Wait: func() time.Duration { return 300 * time.Millisecond }})
			for _, down := range []error{nil, errors.New("no members")} {
				want := "10.0.0.5:9309: it leads no more"
				if s.cfg.Election.answered(down); down != nil {
					want = "it is not known who leads: no members"
				}
				_, err := s.Range(t.Context(), 1)
				assert.True(t, errors.Is(err, idsource.StoreDown) && !errors.As(err, new(*MovedError)) && strings.Contains(err.Error(), want), "%s, and the register says %v: %v", answer, down, err)
			}
		}
		time.Sleep(2 * idleTime) // connections end
	})
}

// TestClientGone: a client that goes before there is a leader takes no time from those behind it.
func TestClientGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const wait = 2 * time.Second
		s := newFollower(t, LineConfig{}, Leader{}, segment.Config{Wait: func() time.Duration { return wait }})
		gone, cancel := context.WithTimeout(t.Context(), wait/4)
		defer cancel()
		assert.Of(s.Range(gone, 1)).Fails(t, "an id came of nobody", "")
		time.Sleep(10 * wait)
		began := time.Now()
		var calls sync.WaitGroup
		for range 3 {
			calls.Go(func() {
				_, err := s.Range(t.Context(), 1)
				assert.True(t, errors.Is(err, idsource.StoreDown) && time.Since(began) == wait, "a later call: %v after %v", err, time.Since(began))
			})
		}
		calls.Wait()
	})
}

// silent is a store that answers nothing.
type silent struct{ idsource.SegmentStore }

// Position implements idsource.SegmentStore.
func (silent) Position(ctx context.Context, _ string) (idsource.Position, error) {
	<-ctx.Done()
	return idsource.Position{}, ctx.Err()
}

// TestAdmitWaits: where another process leads a column waits for the store, and for what is asked of other
// columns, as long as an id may take, and no longer.
func TestAdmitWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const wait = 2 * time.Second
		limit := func() time.Duration { return wait }
		began := time.Now()
		s := newFollower(t, LineConfig{}, Leader{Token: "t", Addr: "h:1"}, segment.Config{Store: silent{}, Wait: limit})
		err := s.Admit(t.Context(), "t.id", 5)
		assert.True(t, errors.Is(err, idsource.StoreDown) && time.Since(began) == wait, "the store is silent: %v after %v", err, time.Since(began))
		began = time.Now()
		s = newFollower(t, LineConfig{}, Leader{Token: "t", Addr: "h:1"}, segment.Config{
			Wait: limit,
			Begin: func(ctx context.Context, _ segment.Beginning) (segment.Greatest, error) {
				<-ctx.Done()
				return segment.Greatest{}, ctx.Err()
			},
		})
		err = s.Admit(t.Context(), "t.id", 5)
		assert.True(t, errors.Is(err, idsource.NotReady) && time.Since(began) == wait, "other columns are silent: %v after %v", err, time.Since(began))
	})
}

// TestLongRefusal: what the leader says is read, however much it has to say.
func TestLongRefusal(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	assert.Must(t, err)
	ctx, end := context.WithCancel(t.Context())
	server := resp.New(resp.Config{Lookup: func(string) (resp.Source, bool) { return refusing{}, true }})
	var serving sync.WaitGroup
	serving.Go(func() { assert.NoError(t, server.Serve(ctx, l)) })
	line := NewLine(LineConfig{})
	_, err = line.Draw(t.Context(), Leader{Addr: l.Addr().String()}, nil, "k", 1)
	refused, ok := errors.AsType[*RefusedError](err)
	assert.True(t, ok && strings.Contains(refused.Text, "too long"), "%.100v", err)
	line.Close()
	end()
	serving.Wait()
}

// refusing is a source that has much to say.
type refusing struct{}

// Fill implements resp.Source.
func (refusing) Fill(context.Context, []uint64, uint64) error {
	return errors.New(strings.Repeat("too long ", 10_000))
}

// TestReadyAgain: a process that had no answer of the leader is not ready until it has one, which it finds out
// without a request.
func TestReadyAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var dead atomic.Bool
		s := says(func(words []string) string {
			switch {
			case dead.Load():
				return ""
			case words[0] == "AUTH":
				return "+OK"
			}
			return ":100"
		}).asks(t, segment.Config{Wait: func() time.Duration { return 2 * time.Second }})
		s.cfg.Election.known = s.cfg.Election.cfg.Clock()
		assert.NoError(t, s.Standing().Problem)
		dead.Store(true)
		assert.Of(s.Range(t.Context(), 1)).ErrorIs(t, "of a leader that is silent", idsource.StoreDown)
		for range 10 {
			assert.Fails(t, "the leader is silent", s.Standing().Problem, "10.0.0.5:9309")
			time.Sleep(time.Second)
		}
		dead.Store(false)
		time.Sleep(3 * time.Second)
		assert.NoError(t, s.Standing().Problem, "the leader answers again")
		assert.NoError(t, s.Close(t.Context()))
		time.Sleep(2 * idleTime) // connections end
	})
}
