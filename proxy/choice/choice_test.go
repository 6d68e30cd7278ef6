package choice

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"idproxy/integration/assert"
)

var errDown = errors.New("connection refused")

// world is servers that a test takes down and makes read-only.
type world struct {
	*Choice
	mu       sync.Mutex
	down     map[int]error
	readOnly map[int]bool
	tried    []int // since the last look
	asked    []int
	slow     map[int]time.Duration // until a server says whether it is read-only
}

// tells says whether the servers of a world tell if they take writes.
type tells bool

const (
	alike   tells = false
	telling tells = true
)

func newWorld(servers int, writable tells) *world {
	w := &world{down: map[int]error{}, readOnly: map[int]bool{}, slow: map[int]time.Duration{}}
	var all []Server
	for i := range servers {
		s := Server{Name: string(rune('a' + i))}
		if writable {
			s.Writable = func(ctx context.Context) error { return w.writable(ctx, i) }
		}
		all = append(all, s)
	}
	w.Choice = New(all)
	return w
}

func (w *world) writable(ctx context.Context, i int) error {
	w.mu.Lock()
	w.asked = append(w.asked, i)
	slow, down, readOnly := w.slow[i], w.down[i], w.readOnly[i]
	w.mu.Unlock()
	select {
	case <-time.After(slow):
	case <-ctx.Done():
		return ctx.Err()
	}
	switch {
	case down != nil:
		return down
	case readOnly:
		return ErrReadOnly
	}
	return nil
}

// each is how long a server has.
const each = 10 * time.Second

// try returns the server that takes a session; -1: none does.
func (w *world) try(ctx context.Context) (got int, err error) {
	got = -1
	err = w.Try(ctx, each, func(_ context.Context, i int) error {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.tried = append(w.tried, i)
		if w.down[i] == nil {
			got = i
		}
		return w.down[i]
	})
	return got, err
}

// goes expects that a session goes to a server, after others were tried and asked.
func (w *world) goes(t *testing.T, to int, tried, asked []int) {
	t.Helper()
	got, err := w.try(t.Context())
	assert.True(t, got == to && (err == nil) == (to >= 0) && slices.Equal(w.tried, tried) && slices.Equal(w.asked, asked),
		"session goes to %d (%v), tried %v, asked %v; want %d, %v, %v", got, err, w.tried, w.asked, to, tried, asked)
	w.tried, w.asked = nil, nil
}

func (w *world) used(t *testing.T, name string, switches uint64) {
	t.Helper()
	n, s := w.Used()
	assert.True(t, n == name && s == switches, "used is %s after %d switches, want %s after %d", n, s, name, switches)
}

// TestFirstThatAccepts: a server that refuses comes behind the others for a while, and is tried by
// one session then.
func TestFirstThatAccepts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(2, alike)
		w.used(t, "a", 0)
		w.goes(t, 0, []int{0}, nil)
		w.down[0] = errDown
		w.goes(t, 1, []int{0, 1}, nil)
		w.used(t, "b", 1)
		w.goes(t, 1, []int{1}, nil) // nobody waits for a
		time.Sleep(pause)
		w.goes(t, 1, []int{0, 1}, nil)
		w.down[1] = errDown
		w.goes(t, -1, []int{1, 0}, nil) // the last resort is tried, too
		w.used(t, "b", 1)
		delete(w.down, 0)
		w.goes(t, 0, []int{1, 0}[1:], nil)
	})
}

// TestOneServer: the only one is tried each time, and its error is as it was.
func TestOneServer(t *testing.T) {
	w := newWorld(1, alike)
	w.down[0] = errDown
	for range 3 {
		if _, err := w.try(t.Context()); err != errDown { //nolint:errorlint // it must be as it was
			t.Errorf("got %v", err)
		}
	}
	if w.Problem() != errDown { //nolint:errorlint // likewise
		t.Errorf("problem %v", w.Problem())
	}
	delete(w.down, 0)
	w.tried = nil
	w.goes(t, 0, []int{0}, nil)
	assert.NoError(t, w.Problem(), "problem")
}

// TestWritable: read-only servers are passed over; what a server said is believed for a while,
// unless there is doubt.
func TestWritable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(time.Second)
		w := newWorld(2, telling)
		w.readOnly[1] = true
		w.goes(t, 0, []int{0}, []int{0})
		w.goes(t, 0, []int{0}, nil)
		time.Sleep(writableFor)
		w.goes(t, 0, []int{0}, []int{0})

		// The servers change places. It shows at the latest when the answer is old.
		w.readOnly[0], w.readOnly[1] = true, false
		w.goes(t, 0, []int{0}, nil)
		time.Sleep(time.Millisecond)
		w.Doubt() // a session got 1290
		time.Sleep(time.Millisecond)
		w.goes(t, 1, []int{1}, []int{0, 1})
		w.used(t, "b", 1)
		w.goes(t, 1, []int{1}, nil)
		time.Sleep(refusedFor)
		w.goes(t, 1, []int{1}, []int{0})

		// None takes writes: it is said of each why.
		w.readOnly[1], w.down[0] = true, errDown
		w.Doubt()
		time.Sleep(time.Millisecond)
		_, err := w.try(t.Context())
		assert.True(t, err != nil && err.Error() == "a: connection refused; b: read-only" && errors.Is(err, errDown) && errors.Is(err, ErrReadOnly), "got %v", err)
		assert.Equal(t, "problem", fmt.Sprint(w.Problem()), err.Error())
		w.used(t, "b", 1)

		// The standby is promoted: at most refusedFor later sessions go there.
		w.readOnly[1] = false
		time.Sleep(refusedFor)
		w.tried, w.asked = nil, nil
		w.goes(t, 1, []int{1}, []int{1})
		assert.NoError(t, w.Problem(), "problem")
	})
}

// TestSlowAnswer: those who come while a server is asked take the same answer, and do not ask one
// after the other.
func TestSlowAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(time.Second)
		w := newWorld(2, telling)
		w.down[0], w.slow[0] = errDown, 3*time.Second
		began := time.Now()
		var all sync.WaitGroup
		for range 50 {
			all.Go(func() {
				assert.Of(w.try(t.Context())).Equal(t, "session goes to", 1)
			})
		}
		all.Wait()
		assert.LessOrEqual(t, "took", time.Since(began), 3*time.Second)
		assert.LessOrEqual(t, "questions", len(w.asked), 3)
	})
}

// TestGone: a session whose client left says nothing of servers, nor does one for which this process
// had no descriptor.
func TestGone(t *testing.T) {
	w := newWorld(2, alike)
	ctx, cancel := context.WithCancel(t.Context())
	err := w.Try(ctx, each, func(context.Context, int) error {
		cancel()
		return errDown
	})
	if err != errDown || w.order()[0] != 0 { //nolint:errorlint // it must be as it was
		t.Errorf("got %v, order %v", err, w.order())
	}
	w.down[0] = fmt.Errorf("socket: %w", syscall.EMFILE)
	if got, err := w.try(t.Context()); got != -1 || !errors.Is(err, syscall.EMFILE) || !slices.Equal(w.tried, []int{0}) {
		t.Errorf("session goes to %d (%v), tried %v", got, err, w.tried)
	}
	assert.Equal(t, "the first of the order", w.order()[0], 0)
}

// TestSilent: one that does not say in time whether it takes writes is given up, by all who wait for
// its answer at once.
func TestSilent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(time.Second)
		w := newWorld(2, telling)
		w.slow[0] = time.Hour
		began := time.Now()
		var all sync.WaitGroup
		for i := range 50 {
			all.Go(func() {
				time.Sleep(time.Duration(i) * time.Millisecond)
				assert.Of(w.try(t.Context())).Equal(t, "session goes to", 1)
			})
		}
		all.Wait()
		assert.LessOrEqual(t, "took", time.Since(began), each+time.Second)
		assert.Equal(t, "problem", fmt.Sprint(w.Status()[0].Problem), "no answer within 10s")
	})
}

// TestChecksAndSessions: a server that passes its checks and takes no sessions stays behind the others,
// until no session came for a while.
func TestChecksAndSessions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(2, alike)
		check := func() { w.Check(t.Context(), each, 0, func(context.Context) error { return nil }) }
		w.down[0] = errDown // 1040, which the account does not get
		w.goes(t, 1, []int{0, 1}, nil)
		for range 60 {
			check()
			w.used(t, "b", 0)
			time.Sleep(time.Second)
			got, err := w.try(t.Context())
			assert.MustTrue(t, got == 1, "session goes to %d: %v", got, err)
		}
		assert.LessOrEqual(t, "tries of 60 sessions", len(w.tried), 60+60/5+2)
		delete(w.down, 0)
		w.tried = nil
		time.Sleep(2 * pause)
		check()
		w.used(t, "a", 1)
		w.goes(t, 0, []int{0}, nil)

		// What a check found, a check takes back.
		w.Check(t.Context(), each, 0, func(context.Context) error { return errDown })
		w.goes(t, 1, []int{1}, nil)
		check()
		w.goes(t, 0, []int{0}, nil)
	})
}

// TestCheck: checks find what sessions do not come across.
func TestCheck(t *testing.T) {
	w := newWorld(3, telling)
	w.readOnly[1], w.down[2] = true, errDown
	for i := range 3 {
		w.Check(t.Context(), each, i, func(context.Context) error { return w.down[i] })
	}
	var got []string
	for _, s := range w.Status() {
		got = append(got, fmt.Sprint(s.Name, s.Used, s.Problem))
	}
	assert.Equal(t, `strings.Join(got, " ")`, strings.Join(got, " "), "atrue <nil> bfalse read-only cfalse connection refused")
	w.down[0] = errDown
	w.Check(t.Context(), each, 0, func(context.Context) error { return errDown })
	w.readOnly[1] = false
	time.Sleep(refusedFor)
	w.Check(t.Context(), each, 1, func(context.Context) error { return nil })
	w.used(t, "b", 1)
	p := w.Problem()
	assert.True(t, p == nil && w.String() == "a, b, c", "problem %v of %s", p, w)
}

// TestOnlyServerRefuses: the only server is there when it refuses a session, and is not when nobody
// can connect.
func TestOnlyServerRefuses(t *testing.T) {
	w := newWorld(1, alike)
	w.down[0] = fmt.Errorf("1040: %w", ErrAnswered)
	if _, err := w.try(t.Context()); err == nil || w.Problem() != nil {
		t.Errorf("it refuses: %v, problem %v", err, w.Problem())
	}
	w.down[0] = errDown
	_, err := w.try(t.Context())
	assert.True(t, err != nil && w.Problem() != nil, "it is down: %v, problem %v", err, w.Problem())
}
