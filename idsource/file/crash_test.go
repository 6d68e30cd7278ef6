package file

import (
	"bufio"
	"bytes"
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

	"idproxy/idsource"
)

// child starts a process that issues ids of the store in dir.
func child(t *testing.T, kind, dir string) (*exec.Cmd, io.Reader, *bytes.Buffer) {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(exe)
	cmd.Env = append(os.Environ(), childEnv+"="+kind, childEnv+"_DIR="+dir)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return cmd, bufio.NewReader(out), &stderr
}

// life runs a child, kills it after a moment with SIGKILL, and returns what it
// issued. The reader keeps the ids, so those written just before the kill count.
func life(t *testing.T, kind, dir string) (ids []uint64) {
	t.Helper()
	cmd, out, stderr := child(t, kind, dir)
	var first [8]byte
	for range 100 { // however busy the machine is
		if _, err := io.ReadFull(out, first[:]); err != nil {
			t.Fatalf("%d ids came: %v, %s", len(ids), err, stderr)
		}
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
	if stderr.Len() > 0 {
		t.Fatalf("child: %s", stderr)
	}
	return ids
}

func TestKillNine(t *testing.T) {
	for _, kind := range []string{"segment", "snowflake"} {
		t.Run(kind, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "data")
			seen := map[uint64]int{}
			for n := range 12 {
				for _, id := range life(t, kind, dir) {
					if before, twice := seen[id]; twice {
						t.Fatalf("life %d issued id %d, which life %d had issued", n, id, before)
					}
					seen[id] = n
				}
			}
			if len(seen) < 1000 {
				t.Errorf("only %d ids in all lives", len(seen))
			}
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
	if count < 1000 {
		t.Errorf("only %d ids in all lives", count)
	}
	return true
}

func TestKillNineAdvance(t *testing.T) {
	for _, kind := range []string{"segment", "snowflake"} {
		t.Run(kind, func(t *testing.T) {
			if !ascends(t, kind+"+advance") {
				t.Error("an id came that lies at or below one the source had been moved past")
			}
			if ascends(t, kind+"+forget") {
				t.Error("a source that was not moved is not noticed: the test proves nothing")
			}
		})
	}
}

// While a process holds the positions or a worker number, another one is told
// which process it is.
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
			if _, err := io.ReadFull(out, make([]byte, 8)); err != nil {
				t.Fatalf("no id came: %v, %s", err, stderr)
			}
			st := newStore(t, dir)
			var err error
			if kind == "segment" {
				_, _, err = st.Reserve(t.Context(), idsource.Ask{Key: "order_id", Count: 1, Floor: 1, Last: 1 << 40})
			} else {
				_, err = st.Acquire(t.Context(), 7, testShape)
			}
			if want := fmt.Sprintf("held by process %d", cmd.Process.Pid); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("error %v, want %q in it", err, want)
			}
		})
	}
}
