package redis

import (
	"bufio"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"idproxy/idsource"
	"idproxy/idsource/lease"
)

// Faults happen to processes: a child is this test program, started again with
// a job. It issues ids as fast as told and writes them down its standard output,
// where the parent, who is never killed, takes note of them.

const jobVariable = "IDPROXY_TEST_CHILD"

type job struct {
	Addr, Pool, Dir string
	Unsafe          string // which rule is taken away from the script
	Threads         int    // that issue ids; default 1
}

// brisk are rules ten times faster than the default.
var brisk = lease.Rules{Heartbeat: 200, Gap: 600, Lead: 800, Ahead: 300, Loss: 200, Skew: 100, Reclaim: 2000}

// unsafe are changes to the script that tests must notice.
var unsafe = map[string]func(string) string{
	"": func(s string) string { return s },
	// The holder is told a bound that it will not reach.
	"fence": func(s string) string {
		return strings.Replace(s, "int(fence or 0)", "int((fence or 0) + 1000000000)", 1)
	},
	"incarnation": func(s string) string {
		return strings.Replace(s, "redis.call('HGET', pool, 'server') ~= id", "false", 1)
	},
}

func child(text string) error {
	var j job
	if err := json.Unmarshal([]byte(text), &j); err != nil {
		return err
	}
	s, err := New(Config{Addrs: []string{j.Addr}})
	if err != nil {
		return err
	}
	s.sha = redis.NewScript(unsafe[j.Unsafe](source))
	log := slog.New(slog.NewTextHandler(os.Stderr, nil))
	k, err := lease.New(lease.Config{Pool: j.Pool, Store: s, Rules: brisk, Dir: j.Dir, Logger: log})
	if err != nil {
		return err
	}
	f, err := idsource.NewSnowflake(idsource.SnowflakeConfig{
		Name: "child", Pool: k, Sequence: "zero", MaxAhead: time.Duration(brisk.Ahead) * time.Millisecond,
		Lead: time.Duration(brisk.Lead) * time.Millisecond, Wait: 100 * time.Millisecond, ClockBack: idsource.BackSwap, Logger: log,
	})
	if err != nil {
		return err
	}
	ctx, stop := context.WithCancel(context.Background())
	go func() { // the parent closes our standard input to have us end well
		_, _ = io.Copy(io.Discard, os.Stdin)
		stop()
	}()
	var wg sync.WaitGroup
	for range max(1, j.Threads) {
		wg.Go(func() { issue(ctx, f) })
	}
	wg.Wait()
	return errors.Join(f.Close(context.Background()), s.Close())
}

// issue fills and writes until ctx is done.
func issue(ctx context.Context, f idsource.Source) {
	ids, out := make([]uint64, 32), make([]byte, 0, 256)
	for ctx.Err() == nil {
		if err := f.Fill(ctx, ids, 1); err != nil {
			time.Sleep(5 * time.Millisecond)
			continue
		}
		out = out[:0]
		for _, id := range ids {
			out = binary.LittleEndian.AppendUint64(out, id)
		}
		if _, err := os.Stdout.Write(out); err != nil {
			return // the parent is gone
		}
		time.Sleep(time.Millisecond)
	}
}

// record takes note of the ids of all children.
type record struct {
	mu  sync.Mutex
	ids []uint64
}

func (r *record) add(ids []uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ids = append(r.ids, ids...)
}

func (r *record) count() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.ids)
}

// twice returns the ids that came more than once.
func (r *record) twice() (again []uint64) {
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

// proc is a running child.
type proc struct {
	cmd  *exec.Cmd
	in   io.Closer
	log  strings.Builder
	mine record
	done chan struct{}
}

func start(t testing.TB, j job, all *record) *proc {
	t.Helper()
	text, err := json.Marshal(j)
	if err != nil {
		t.Fatal(err)
	}
	p := &proc{cmd: exec.Command(os.Args[0]), done: make(chan struct{})}
	p.cmd.Env = append(os.Environ(), jobVariable+"="+string(text))
	p.cmd.Stderr = &p.log
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	in, err1 := p.cmd.StdinPipe()
	out, err2 := p.cmd.StdoutPipe()
	if err := errors.Join(err1, err2, p.cmd.Start()); err != nil {
		t.Fatal(err)
	}
	p.in = in
	go func() {
		defer close(p.done)
		var b [8]byte
		for r := bufio.NewReader(out); ; {
			if _, err := io.ReadFull(r, b[:]); err != nil {
				return
			}
			id := []uint64{binary.LittleEndian.Uint64(b[:])}
			all.add(id)
			p.mine.add(id)
		}
	}()
	return p
}

func (p *proc) signal(t testing.TB, sig syscall.Signal) {
	t.Helper()
	if err := p.cmd.Process.Signal(sig); err != nil {
		t.Fatal(err)
	}
}

// end ends a child well, or with SIGKILL.
func (p *proc) end(t testing.TB, kill bool) {
	t.Helper()
	if kill {
		p.signal(t, syscall.SIGKILL)
	}
	_ = p.in.Close() // it may be gone
	<-p.done
	if err := p.cmd.Wait(); err != nil && !kill {
		t.Errorf("child: %v\n%s", err, p.log.String())
	}
}

// issues waits until the child has issued n more ids.
func (p *proc) issues(t testing.TB, n int, within time.Duration) {
	t.Helper()
	want := p.mine.count() + n
	for end := time.Now().Add(within); p.mine.count() < want; time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%d ids within %v, want %d\n%s", p.mine.count()+n-want, within, n, p.log.String())
		}
	}
}

// either waits until the two have issued n more ids together.
func (p *proc) either(t testing.TB, other *proc, n int, within time.Duration) {
	t.Helper()
	want := p.mine.count() + other.mine.count() + n
	for end := time.Now().Add(within); p.mine.count()+other.mine.count() < want; time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("too few ids within %v\n%s\n%s", within, p.log.String(), other.log.String())
		}
	}
}

func briskPool(t testing.TB, s *Store, pool string, numbers uint64) {
	t.Helper()
	if _, err := s.Add(t.Context(), lease.Fill{Pool: pool, Shape: childShape(), Numbers: numbers, Fresh: true, Rules: brisk}); err != nil {
		t.Fatal(err)
	}
}

// briskAgain makes a pool that was lost.
func briskAgain(t testing.TB, s *Store, pool string, numbers uint64) {
	t.Helper()
	if _, err := s.Add(t.Context(), lease.Fill{Pool: pool, Shape: childShape(), Numbers: numbers, Rules: brisk}); err != nil {
		t.Fatal(err)
	}
}

func childShape() string {
	l, err := idsource.ParseLayout(idsource.DefaultLayout)
	if err != nil {
		panic(fmt.Sprintf("the default layout: %v", err))
	}
	shape, _ := l.Shape(idsource.DefaultEpoch)
	return lease.ShapeText(shape.Layout, shape.Epoch)
}
