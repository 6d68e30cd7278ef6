package holders

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"idproxy/idsource"
	"idproxy/idsource/lease"
	"idproxy/idsource/snowflake"
)

const jobVariable = "IDPROXY_TEST_CHILD"

// Job is what a holder is to do.
type Job struct {
	Store   json.RawMessage // where the pool is, as the test's own program understands it
	Pool    string
	Dir     string      // of the file by which it takes its number again; default: none
	Unsafe  string      // a rule that is taken away
	Slow    bool        // the store answers a renewal late, see slow
	Once    bool        // the store's numbers are used once
	Threads int         // that issue ids; default 1
	Rules   lease.Rules // default Brisk
}

// Brisk are rules faster than the default. On a busy machine a heartbeat comes two seconds late.
var Brisk = lease.Rules{Heartbeat: 200, Gap: 2000, Lead: 2200, Ahead: 300, Loss: 200, Skew: 100, Reclaim: 4800}

// Main does the job of a holder and ends the process, if it was started as one.
func Main(open func(j Job) (lease.Store, error)) {
	text := os.Getenv(jobVariable)
	if text == "" {
		return
	}
	var j Job
	err := json.Unmarshal([]byte(text), &j)
	if err == nil {
		err = hold(j, open)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

func hold(j Job, open func(j Job) (lease.Store, error)) error {
	s, err := open(j)
	if err != nil {
		return err
	}
	s = j.unsafe(s)
	var issued atomic.Int64
	if j.Slow {
		s = slow{s, &issued}
	}
	log := slog.New(slog.NewTextHandler(os.Stderr, nil))
	k, err := lease.New(lease.Config{Pool: j.Pool, Store: s, Rules: j.Rules, Dir: j.Dir, Once: j.Once, Logger: log})
	if err != nil {
		return err
	}
	f, err := snowflake.New(snowflake.Config{
		Name: "child", Pool: k, Sequence: "zero", MaxAhead: time.Duration(j.Rules.Ahead) * time.Millisecond,
		Lead: time.Duration(j.Rules.Lead) * time.Millisecond, Wait: func() time.Duration { return 100 * time.Millisecond }, ClockBack: snowflake.BackSwap, Logger: log,
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
		wg.Go(func() { issue(ctx, f, &issued) })
	}
	wg.Wait()
	return errors.Join(f.Close(context.Background()), s.Close())
}

// issue fills and writes until ctx is done, and counts how often.
func issue(ctx context.Context, f idsource.Series, issued *atomic.Int64) {
	ids, out := make([]uint64, 32), make([]byte, 0, 256)
	for ctx.Err() == nil {
		if err := f.Fill(ctx, ids, 1); err != nil {
			time.Sleep(5 * time.Millisecond)
			continue
		}
		issued.Add(1)
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
