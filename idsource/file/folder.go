package file

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"idproxy/idsource"
)

// Files of the folder. Those that end in .lock are only ever locked.
const (
	storeFile    = "store"
	segmentsFile = "segments"
	workersFile  = "workers"
)

// maxSize bounds what is read of a file; a million keys stay below it.
const maxSize = 64 << 20

// prepare makes sure that the folder is a store, and says whether it made one.
func prepare(dir string) (created bool, err error) {
	if err = Look(dir); errors.Is(err, fs.ErrNotExist) {
		created = true
		if err = create(dir); err == nil {
			err = Look(dir)
		}
	}
	return created && err == nil, err
}

// Look says why a folder cannot be a store, and changes nothing. The error is fs.ErrNotExist when
// there is none yet: a store makes its folder, but not the one above it.
func Look(dir string) error {
	if _, err := os.Lstat(dir); err != nil {
		return err
	}
	data, err := readFile(filepath.Join(dir, storeFile))
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("folder %s exists and is no id store: restore its content, or name a folder that does not exist yet "+
			"if no id was ever issued from it", dir)
	}
	if err != nil {
		return err
	}
	if _, err := unseal(storeKind, data); err != nil {
		return fmt.Errorf("%s: %w", filepath.Join(dir, storeFile), err)
	}
	return nil
}

// create builds the folder beside its place and renames it, so that a folder
// with only some of its files never exists.
func create(dir string) error {
	parent := filepath.Dir(dir)
	temp, err := os.MkdirTemp(parent, filepath.Base(dir)+".new-")
	if err != nil {
		return err
	}
	give(temp, parent)
	files := map[string][]byte{
		storeFile:    seal(storeKind, nil),
		segmentsFile: positions{}.render(),
		workersFile:  renderWorkers(nil),
	}
	for name, data := range files {
		if err := replace(filepath.Join(temp, name), data); err != nil {
			return errors.Join(err, os.RemoveAll(temp))
		}
	}
	if err := os.Rename(temp, dir); err != nil {
		// Another process was first; prepare looks at what it made.
		if errors.Is(err, fs.ErrExist) || errors.Is(err, syscall.ENOTEMPTY) {
			return os.RemoveAll(temp)
		}
		return errors.Join(err, os.RemoveAll(temp))
	}
	return syncDir(parent)
}

// Writable says why this process cannot keep anything in a folder, which need not be there yet. It
// changes nothing.
func Writable(dir string) error {
	if _, err := os.Lstat(dir); errors.Is(err, fs.ErrNotExist) {
		return access(filepath.Dir(dir), unix.W_OK|unix.X_OK)
	}
	if err := access(dir, unix.R_OK|unix.W_OK|unix.X_OK); err != nil {
		return err
	}
	for name, mode := range map[string]uint32{storeFile: unix.R_OK, segmentsFile: unix.R_OK, segmentsFile + ".lock": unix.R_OK | unix.W_OK} {
		if err := access(filepath.Join(dir, name), mode); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

func access(path string, mode uint32) error {
	if err := unix.Access(path, mode); err != nil {
		return &fs.PathError{Op: "use", Path: path, Err: err}
	}
	return nil
}

func readFile(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	data, err := io.ReadAll(io.LimitReader(f, maxSize+1))
	if err := errors.Join(err, f.Close()); err != nil {
		return nil, err
	}
	if len(data) > maxSize {
		return nil, fmt.Errorf("%s is larger than %d bytes", path, maxSize)
	}
	return data, nil
}

// replace writes a file whole: after a crash either the old or the new content
// is there, and after replace returned nil the new one is.
func replace(path string, data []byte) error {
	temp := path + ".tmp"
	f, err := os.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_TRUNC|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return err
	}
	give(temp, filepath.Dir(path))
	_, err = f.Write(data)
	if err == nil {
		err = f.Sync()
	}
	if err := errors.Join(err, f.Close()); err != nil {
		return err
	}
	if err := os.Rename(temp, path); err != nil {
		return err
	}
	return syncDir(filepath.Dir(path))
}

// give has what root makes in a folder belong to its owner: a command that an administrator ran must not lock the
// service out. Where root may not do that it stays root's.
func give(path, folder string) {
	if os.Geteuid() != 0 {
		return
	}
	info, err := os.Stat(folder)
	if err != nil {
		return
	}
	if of, ok := info.Sys().(*syscall.Stat_t); ok && (of.Uid != 0 || of.Gid != 0) {
		_ = os.Lchown(path, int(of.Uid), int(of.Gid))
	}
}

func syncDir(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// heldError is of kind Held.
type heldError struct{ path, by string }

// Error says who holds what.
func (e *heldError) Error() string { return fmt.Sprintf("%s is held by process %s", e.path, e.by) }

// Unwrap returns the kind.
func (*heldError) Unwrap() error { return idsource.Held }

// lock is a file held by flock. The kernel drops it with the process.
type lock struct {
	path string
	file *os.File
}

// acquire locks path for this process and writes the process's number into it.
func acquire(path string) (*lock, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return nil, err
	}
	give(path, filepath.Dir(path))
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		defer f.Close() //nolint:errcheck // nothing was written
		if errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, &heldError{path, holder(f)}
		}
		return nil, fmt.Errorf("lock %s: %w", path, err)
	}
	pid := strconv.Itoa(os.Getpid())
	_, err = f.WriteAt([]byte(pid), 0)
	if err = errors.Join(err, f.Truncate(int64(len(pid)))); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return &lock{path: path, file: f}, nil
}

// holder reads whose lock it is; the number is not there yet when the other
// process has just taken it.
func holder(f *os.File) string {
	b := make([]byte, 20)
	n, _ := f.ReadAt(b, 0) // the number is shorter: always io.EOF
	if pid := strings.TrimSpace(string(b[:n])); pid != "" {
		return pid
	}
	return "(unknown)"
}

// valid notices that the folder was moved or replaced behind the lock: another
// process may hold the lock of the new one.
func (l *lock) valid() error {
	held, err := l.file.Stat()
	if err != nil {
		return err
	}
	now, err := os.Stat(l.path)
	if err != nil {
		return err
	}
	if !os.SameFile(held, now) {
		return fmt.Errorf("%s was replaced while it was held", l.path)
	}
	return nil
}

func (l *lock) release() error { return l.file.Close() }
