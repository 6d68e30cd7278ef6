package monitor

import (
	"errors"
	"net"
	"os"
	"sync"
	"syscall"
)

// spares is how many clients the admin listener takes at once when sessions have opened all files
// that the process may open.
const spares = 8

// reserve is files that are open for nothing but to be closed: then there is a descriptor for a
// client that has come to ask what is wrong.
type reserve struct {
	mu    sync.Mutex
	files []*os.File
	done  bool
}

// fill opens what lacks, as far as that can be had.
func (r *reserve) fill() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for !r.done && len(r.files) < spares {
		file, err := os.Open(os.DevNull)
		if err != nil {
			return
		}
		r.files = append(r.files, file)
	}
}

// accept takes a client in the place of a spare file. The error is that of the listener, or that
// there is none left.
func (r *reserve) accept(l net.Listener) (net.Conn, error) {
	if !r.give() {
		return nil, syscall.EMFILE
	}
	return l.Accept()
}

// give closes one, and reports whether there was one.
func (r *reserve) give() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	last := len(r.files) - 1
	if last < 0 {
		return false
	}
	_ = r.files[last].Close() // nothing was written
	r.files = r.files[:last]
	return true
}

// close closes them all.
func (r *reserve) close() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.done = true
	for _, file := range r.files {
		_ = file.Close() // nothing was written
	}
	r.files = nil
}

// noFiles reports whether an error is that no file can be opened.
func noFiles(err error) bool { return errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE) }
