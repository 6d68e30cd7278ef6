package holders

import (
	"bufio"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"idproxy/idsource/lease"
	"idproxy/idsource/snowflake"
	"idproxy/integration/assert"
)

// Record takes note of the ids of all holders.
type Record struct {
	mu  sync.Mutex
	ids []uint64
}

func (r *Record) add(id uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ids = append(r.ids, id)
}

// Count is how many ids there are so far.
func (r *Record) Count() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.ids)
}

// Twice returns the ids that came more than once.
func (r *Record) Twice() (again []uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	slices.Sort(r.ids)
	for i := 1; i < len(r.ids); i++ {
		if r.ids[i] == r.ids[i-1] {
			again = append(again, r.ids[i])
		}
	}
	return again
}

// Process is a running holder.
type Process struct {
	cmd  *exec.Cmd
	in   io.Closer
	log  logged
	mine Record
	done chan struct{}
}

// logged is what a holder has said so far.
type logged struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *logged) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(b)
}

func (l *logged) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// Start starts a holder whose ids are noted in all. It is killed at the end of
// the test at the latest.
func Start(t testing.TB, j Job, all *Record) *Process {
	t.Helper()
	if j.Rules.Heartbeat == 0 {
		j.Rules = Brisk
	}
	text := assert.Of(json.Marshal(j)).Must(t)
	p := &Process{cmd: exec.Command(os.Args[0]), done: make(chan struct{})}
	p.cmd.Env = append(os.Environ(), jobVariable+"="+string(text))
	p.cmd.Stderr = &p.log
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	in, err1 := p.cmd.StdinPipe()
	out, err2 := p.cmd.StdoutPipe()
	assert.Must(t, errors.Join(err1, err2, p.cmd.Start()))
	p.in = in
	go func() {
		defer close(p.done)
		var b [8]byte
		for r := bufio.NewReader(out); ; {
			if _, err := io.ReadFull(r, b[:]); err != nil {
				return
			}
			id := binary.LittleEndian.Uint64(b[:])
			all.add(id)
			p.mine.add(id)
		}
	}()
	t.Cleanup(func() { _ = p.cmd.Process.Kill() }) // it may have ended
	return p
}

// Signal sends sig to the holder.
func (p *Process) Signal(t testing.TB, sig syscall.Signal) {
	t.Helper()
	assert.Must(t, p.cmd.Process.Signal(sig))
}

// End ends a holder well.
func (p *Process) End(t testing.TB) {
	t.Helper()
	if err := p.end(); err != nil {
		t.Errorf("child: %v\n%s", err, p.log.String())
	}
}

// Kill ends a holder with SIGKILL.
func (p *Process) Kill(t testing.TB) {
	t.Helper()
	p.Signal(t, syscall.SIGKILL)
	_ = p.end() // which is of the signal
}

func (p *Process) end() error {
	_ = p.in.Close() // it may be gone
	<-p.done
	return p.cmd.Wait()
}

// Log is what the holder has logged so far.
func (p *Process) Log() string { return p.log.String() }

// Count is how many ids the holder has issued so far.
func (p *Process) Count() int { return p.mine.Count() }

// IDs are the ids of the holder so far, in the order of their arrival.
func (p *Process) IDs() []uint64 {
	p.mine.mu.Lock()
	defer p.mine.mu.Unlock()
	return slices.Clone(p.mine.ids)
}

// Times are the times that the ids of the holder carry, in milliseconds since
// [snowflake.DefaultEpoch].
func (p *Process) Times() (all []uint64) {
	l := layout()
	for _, id := range p.IDs() {
		all = append(all, l.Decode(id).Time)
	}
	return all
}

// limit is how long a test waits for an event.
const limit = time.Minute

// Issues waits until the holder has issued n more ids.
func (p *Process) Issues(t testing.TB, n int) {
	t.Helper()
	Issue(t, n, p)
}

// Issue waits until the holders have issued n more ids together.
func Issue(t testing.TB, n int, holders ...*Process) {
	t.Helper()
	count := func() (all int) {
		for _, p := range holders {
			all += p.Count()
		}
		return all
	}
	want := count() + n
	until(t, fmt.Sprintf("%d more ids", n), func() bool { return count() >= want }, holders...)
}

// EachIssues waits until each of the holders has issued n more ids.
func EachIssues(t testing.TB, n int, holders ...*Process) {
	t.Helper()
	for _, p := range holders {
		p.Issues(t, n)
	}
}

// End ends holders well, and reports ids that came twice.
func End(t testing.TB, all *Record, holders ...*Process) {
	t.Helper()
	for _, p := range holders {
		p.End(t)
	}
	if again := all.Twice(); len(again) > 0 {
		t.Errorf("%d ids twice, the first is %d", len(again), again[0])
	}
}

// Says waits until the holder has logged some words.
func (p *Process) Says(t testing.TB, words string) {
	t.Helper()
	until(t, fmt.Sprintf("a log with %q", words), func() bool { return strings.Contains(p.Log(), words) }, p)
}

// until waits for what holders do.
func until(t testing.TB, what string, done func() bool, holders ...*Process) {
	t.Helper()
	for end := time.Now().Add(limit); !done(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			var logs strings.Builder
			for _, p := range holders {
				fmt.Fprintln(&logs, p.Count(), "ids;", p.Log())
			}
			t.Fatalf("waited for %s for %v\n%s", what, limit, logs.String())
		}
	}
}

// Fill makes a pool that was never used and rests for no time, by the rules
// that holders have unless their job says otherwise.
func Fill(t testing.TB, s lease.Store, pool string, numbers uint64) {
	t.Helper()
	FillBy(t, s, Brisk, lease.Fill{Pool: pool, Numbers: numbers, Fresh: true})
}

// FillAgain makes a pool that was lost.
func FillAgain(t testing.TB, s lease.Store, pool string, numbers uint64) {
	t.Helper()
	FillBy(t, s, Brisk, lease.Fill{Pool: pool, Numbers: numbers})
}

// FillBy makes a pool for holders with rules of their own.
func FillBy(t testing.TB, s lease.Store, rules lease.Rules, f lease.Fill) {
	t.Helper()
	f.Shape, f.Rules = Shape(), rules
	assert.Of(s.Add(t.Context(), f)).Must(t)
}

// layout is that of holders' ids.
func layout() snowflake.Layout {
	l, err := snowflake.ParseLayout(snowflake.DefaultLayout)
	if err != nil {
		panic(fmt.Sprintf("the default layout: %v", err))
	}
	return l
}

// Shape is the shape of holders' ids.
func Shape() string {
	shape, _ := layout().Shape(snowflake.DefaultEpoch)
	return lease.ShapeText(shape.Layout, shape.Epoch)
}
