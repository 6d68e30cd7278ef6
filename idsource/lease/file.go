package lease

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// saved is a number as the file has it. It counts only in the file that it was written to, as it was
// written last, and only until the machine starts again.
type saved struct {
	Pool, Shape string
	Place       string // of the store
	Boot        string // of the kernel
	File        uint64 // inode
	Wrote       int64  // when it was written, by the host's clock, as the file has its own times
	Worker      uint64
	Token       string
	Until       int64         // every timestamp used lies below
	Fence       int64         // as stored in the pool
	Beat        int64         // the last sign of life that the pool confirmed
	Deadline    time.Duration // on the clock since boot
	Now         int64         // the pool's clock
	At          time.Duration // when it said so, since boot
}

func (r *keeping) saved(until int64) saved {
	return saved{
		Pool: r.cfg.Pool, Shape: r.shape, Place: r.cfg.Place, Worker: r.main.Worker, Token: r.main.Token, Until: until, Fence: r.main.Fence, Beat: r.main.Beat,
		Deadline: r.main.deadline, Now: r.seen.now, At: r.seen.at,
	}
}

// resume takes up the number of a process that ended without giving it back.
// It goes on where the last one may have come to, so nothing depends on which
// clock says what.
func (r *keeping) resume() {
	s, ok := r.file.load()
	if !ok || s.Pool != r.cfg.Pool || s.Place != r.cfg.Place || s.Shape != r.shape || s.Worker >= r.numbers {
		return
	}
	if r.cfg.Clock() > s.Deadline {
		return // the next number overwrites it
	}
	r.cfg.Logger.Info("worker number taken up again", "source", r.cfg.Pool, "worker", s.Worker)
	r.main = &Hold{Worker: s.Worker, Token: s.Token, Start: max(s.Until, r.tenant.Unused(s.Worker)), Fence: s.Fence, Beat: s.Beat, Active: true, deadline: s.Deadline}
	r.until, r.was = s.Until, true
	r.seen = clock{now: s.Now, at: s.At}
	if s.Until < s.Fence {
		r.grant(s.Fence) // the store has that bound already: there is no need to ask it first
	}
}

// file keeps one number across a restart. It is locked while its process lives.
type file struct {
	f     *os.File
	inode uint64
	boot  string
}

// slots is how many processes of one host may each have a file of one pool.
const slots = 64

// openFile returns the first file that no other process has, or nil: a Keeper
// does without one.
func openFile(dir, pool string, log *slog.Logger) *file {
	if dir == "" {
		return nil
	}
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err == nil {
		err = os.MkdirAll(dir, 0o700)
	}
	for i := 0; err == nil && i < slots; i++ {
		var f *os.File
		f, err = os.OpenFile(filepath.Join(dir, fmt.Sprintf("%s-%d.lease", pool, i)), os.O_RDWR|os.O_CREATE, 0o600)
		if err != nil {
			break
		}
		if syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) != nil {
			_ = f.Close() // nothing was written
			continue
		}
		info, serr := f.Stat()
		if serr != nil {
			err = errors.Join(serr, f.Close())
			break
		}
		return &file{f: f, inode: info.Sys().(*syscall.Stat_t).Ino, boot: strings.TrimSpace(string(boot))}
	}
	log.Warn("a restart will take another worker number: no file to remember it in", "source", pool, "file.directory", dir, "error.message", err)
	return nil
}

func (f *file) close() {
	if f != nil {
		_ = f.f.Close() // what was written was synced
	}
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// load returns what this very file was given since the machine was started.
func (f *file) load() (s saved, ok bool) {
	if f == nil {
		return s, false
	}
	b := make([]byte, 4096)
	n, _ := f.f.ReadAt(b, 0) // the content is shorter: always io.EOF
	line, _, ended := bytes.Cut(b[:n], []byte{'\n'})
	sum, text, _ := bytes.Cut(line, []byte{' '})
	if !ended || string(sum) != fmt.Sprintf("%08x", crc32.Checksum(text, castagnoli)) {
		return s, false
	}
	if err := json.Unmarshal(text, &s); err != nil {
		return s, false
	}
	var now unix.Stat_t
	if err := unix.Fstat(int(f.f.Fd()), &now); err != nil {
		return s, false
	}
	later := time.Duration(now.Ctim.Nano() - s.Wrote) // what was put back was written later than it says
	return s, s.Boot == f.boot && s.File == f.inode && later.Abs() < putBack
}

// putBack is from what difference on a file was written by somebody else. What changes nothing but its times or its owner looks the
// same: then another number is taken.
const putBack = time.Second

// save writes in place, so that the file stays the one that is locked. A torn write fails its
// checksum; the process then takes a number anew.
func (f *file) save(s saved) error {
	if f == nil {
		return nil
	}
	var now unix.Timespec // of the system, where time.Now may be that of a test
	if err := unix.ClockGettime(unix.CLOCK_REALTIME, &now); err != nil {
		return fmt.Errorf("the file of the worker number: %w", err)
	}
	s.Boot, s.File, s.Wrote = f.boot, f.inode, now.Nano()
	text, err := json.Marshal(s)
	if err != nil {
		return err
	}
	line := fmt.Appendf(nil, "%08x %s\n", crc32.Checksum(text, castagnoli), text)
	if len(line) > 4096 {
		return errors.New("a lease does not fit its file")
	}
	_, err = f.f.WriteAt(line, 0)
	if err = errors.Join(err, f.f.Sync()); err != nil {
		return fmt.Errorf("the file of the worker number: %w", err)
	}
	return nil
}

// clear forgets the number. It comes before the pool hears that the number is
// free: nobody may take up again what was given back.
func (f *file) clear() error {
	if f == nil {
		return nil
	}
	return errors.Join(f.f.Truncate(0), f.f.Sync())
}
