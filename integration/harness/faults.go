package harness

import (
	"errors"
	"os"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"idproxy/integration/assert"
)

// FaultsVariable names the file of a Faults in the environment of a program that BuildFaults built.
const FaultsVariable = "IDPROXY_FAULTS"

// Faults move the clocks of one program, as package idsource/faults says. They stay in force when
// it is started again.
type Faults struct {
	path    string
	numbers *[6]int64
}

// NewFaults writes a file without faults.
func NewFaults(tb testing.TB, path string) *Faults {
	tb.Helper()
	f := &Faults{path: path}
	size := int(unsafe.Sizeof(*f.numbers))
	assert.Must(tb, os.WriteFile(path, make([]byte, size), 0o600))
	file, err := os.OpenFile(path, os.O_RDWR, 0)
	assert.Must(tb, err)
	mem, err := syscall.Mmap(int(file.Fd()), 0, size, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_SHARED)
	assert.Must(tb, errors.Join(err, file.Close()))
	f.numbers = (*[6]int64)(unsafe.Pointer(unsafe.SliceData(mem))) // for as long as the test program lives
	return f
}

// Env is what the program needs in its environment.
func (f *Faults) Env() string { return FaultsVariable + "=" + f.path }

// Wall moves the wall clock: it is ahead of the host's by d.
func (f *Faults) Wall(d time.Duration) { atomic.StoreInt64(&f.numbers[0], int64(d)) }

// Mono moves the monotonic clock.
func (f *Faults) Mono(d time.Duration) { atomic.StoreInt64(&f.numbers[1], int64(d)) }

// NoFence has stores and pools of worker numbers keep no fence, from the next start on.
func (f *Faults) NoFence() { atomic.StoreInt64(&f.numbers[2], 1) }

// NoBegin has series begin above the column of their first INSERT alone, from the next start on.
func (f *Faults) NoBegin() { atomic.StoreInt64(&f.numbers[3], 1) }

// NoShare has no process take turns with the one whose place it takes, from the next start on.
func (f *Faults) NoShare() { atomic.StoreInt64(&f.numbers[4], 1) }

// NoSeal has a series that goes on in another place stay open in the one before, from the next reload on.
func (f *Faults) NoSeal() { atomic.StoreInt64(&f.numbers[5], 1) }
