package file

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"idproxy/idsource"
	"idproxy/idsource/segment"
	"idproxy/idsource/snowflake"
	"idproxy/integration/assert"
)

// child starts a process that issues ids of the store in dir.
func child(t *testing.T, kind, dir string) (*exec.Cmd, io.Reader, *bytes.Buffer) {
	t.Helper()
	exe := assert.Of(os.Executable()).Must(t)
	cmd := exec.Command(exe)
	cmd.Env = append(os.Environ(), childEnv+"="+kind, childEnv+"_DIR="+dir)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out := assert.Of(cmd.StdoutPipe()).Must(t)
	assert.Must(t, cmd.Start())
	return cmd, bufio.NewReader(out), &stderr
}

// life runs a child, kills it after a moment with SIGKILL, and returns what it
// issued. The reader keeps the ids, so those written just before the kill count.
func life(t *testing.T, kind, dir string) (ids []uint64) {
	t.Helper()
	cmd, out, stderr := child(t, kind, dir)
	var first [8]byte
	for range 100 { // however busy the machine is
		assert.Of(io.ReadFull(out, first[:])).Must(t, len(ids), "ids came", stderr)
		ids = append(ids, binary.BigEndian.Uint64(first[:]))
	}
	kill := time.AfterFunc(time.Duration(rand.IntN(40_000))*time.Microsecond, func() { _ = cmd.Process.Kill() })
	defer kill.Stop()
	for {
		var b [8]byte
		if _, err := io.ReadFull(out, b[:]); err != nil {
			break
		}
		ids = append(ids, binary.BigEndian.Uint64(b[:]))
	}
	_ = cmd.Wait() // killed
	assert.MustTrue(t, stderr.Len() <= 0, "child: %s", stderr)
	return ids
}

func TestKillNine(t *testing.T) {
	for _, kind := range []string{"segment", "snowflake"} {
		t.Run(kind, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "data")
			seen := map[uint64]int{}
			for n := range 12 {
				for _, id := range life(t, kind, dir) {
					before, twice := seen[id]
					assert.MustTrue(t, !twice, "life %d issued id %d, which life %d had issued", n, id, before)
					seen[id] = n
				}
			}
			assert.True(t, len(seen) >= 1000, "only %d ids in all lives", len(seen))
		})
	}
}

// ascends says whether every id that a row of killed processes issued lies above
// all ids before it, those that the source was moved past among them.
func ascends(t *testing.T, kind string) bool {
	dir := filepath.Join(t.TempDir(), "data")
	last, count := uint64(0), 0
	for range 12 {
		for _, id := range life(t, kind, dir) {
			if id <= last {
				return false
			}
			last = id
			count++
		}
	}
	assert.True(t, count >= 1000, "only %d ids in all lives", count)
	return true
}

func TestKillNineAdvance(t *testing.T) {
	for _, kind := range []string{"segment", "snowflake"} {
		t.Run(kind, func(t *testing.T) {
			assert.True(t, ascends(t, kind+"+advance"), "an id came that lies at or below one the source had been moved past")
			assert.True(t, !ascends(t, kind+"+forget"), "a source that was not moved is not noticed: the test proves nothing")
		})
	}
}

// While a process holds the positions or a worker number, another one is told which process it is.
func TestLockedByProcess(t *testing.T) {
	for _, kind := range []string{"segment", "snowflake"} {
		t.Run(kind, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "data")
			cmd, out, stderr := child(t, kind, dir)
			defer func() {
				_ = cmd.Process.Kill()
				_, _ = io.Copy(io.Discard, out)
				_ = cmd.Wait()
			}()
			assert.Of(io.ReadFull(out, make([]byte, 8))).Must(t, "no id came", stderr)
			st := newStore(t, dir)
			var err error
			if kind == "segment" {
				_, _, err = st.Reserve(t.Context(), idsource.Ask{Key: "order_id", Count: 1, Floor: 1, Last: 1 << 40})
			} else {
				_, err = st.Acquire(t.Context(), 7, testShape)
			}
			want := fmt.Sprintf("held by process %d", cmd.Process.Pid)
			assert.True(t, err != nil && strings.Contains(err.Error(), want), "error %v, want %q in it", err, want)
		})
	}
}

// childEnv turns the test binary into a process that issues ids until it is killed: "segment" or
// "snowflake", and whether it moves the source past other ids: "", "+advance", or "+forget", which
// only says it does. With "tuning" it issues the steps that it tunes a series to.
const childEnv = "IDSOURCE_FILE_TEST_CHILD"

func TestMain(m *testing.M) {
	if kind := os.Getenv(childEnv); kind != "" {
		if err := issue(kind, os.Getenv(childEnv+"_DIR")); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	goleak.VerifyTestMain(m)
}

// issue writes every id it gets to standard output, eight bytes each.
func issue(kind, dir string) error {
	st, err := New(Config{Dir: dir})
	if err != nil {
		return err
	}
	if kind == "tuning" {
		return tuneOn(st)
	}
	var src idsource.Series
	kind, advance, _ := strings.Cut(kind, "+")
	if kind == "segment" {
		if err := st.Open(context.Background(), "order_id", 1, 0); err != nil {
			return err
		}
		src, err = segment.New(segment.Config{Name: "order_id", Store: st, Step: 20, MaxStep: 40})
	} else {
		src, err = snowflake.New(snowflake.Config{Name: "event_id", Fences: st, Worker: 7, Renew: 20 * time.Millisecond})
	}
	if err != nil {
		return err
	}
	ids := make([]uint64, 3, 4)
	for {
		if err := src.Fill(context.Background(), ids, 1); err != nil {
			return err
		}
		var out []byte
		more := ids
		if advance != "" {
			other := ids[2] + 1 + ids[2]%70
			more = append(ids, other)
			if advance == "advance" {
				if err := src.Advance(context.Background(), other); err != nil {
					return err
				}
			}
		}
		for _, id := range more {
			out = binary.BigEndian.AppendUint64(out, id)
		}
		if _, err := os.Stdout.Write(out); err != nil {
			return err
		}
	}
}

// tuneOn tunes a series to greater and greater steps.
func tuneOn(st *Store) error {
	ctx := context.Background()
	if err := st.Open(ctx, "k", 1, 0); err != nil {
		return err
	}
	to, err := st.Tuning(ctx, "k")
	for err == nil {
		to.Step++
		if err = st.Tune(ctx, "k", to); err == nil {
			_, err = os.Stdout.Write(binary.BigEndian.AppendUint64(nil, to.Step))
		}
	}
	return err
}
