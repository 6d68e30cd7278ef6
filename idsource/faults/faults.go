//go:build faultinject

package faults

import (
	"fmt"
	"os"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"
)

// Variable names the file that a test writes faults into. It is mapped, so that what is written is
// in force at once. It has six numbers of eight bytes in the host's order: nanoseconds to add to
// the wall clock, nanoseconds to add to the monotonic clock, whether stores of worker numbers keep
// no fence (not 0), whether a series begins above the column of its first INSERT alone (not 0),
// whether a process takes no turns with the one whose place it takes (not 0), and whether a series
// that goes on elsewhere is left open where it was (not 0).
const Variable = "IDPROXY_FAULTS"

const numbers = 6

var file = open(os.Getenv(Variable))

func open(path string) *[numbers]int64 {
	if path == "" {
		return new([numbers]int64)
	}
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		panic(fmt.Sprintf("faults: %v", err))
	}
	defer f.Close() //nolint:errcheck // the mapping stays
	mem, err := syscall.Mmap(int(f.Fd()), 0, int(unsafe.Sizeof([numbers]int64{})), syscall.PROT_READ, syscall.MAP_SHARED)
	if err != nil {
		panic(fmt.Sprintf("faults: map %s: %v", path, err))
	}
	return (*[numbers]int64)(unsafe.Pointer(unsafe.SliceData(mem)))
}

// Wall is by how much the wall clock is moved now.
func Wall() time.Duration { return time.Duration(atomic.LoadInt64(&file[0])) }

// Mono is by how much the monotonic clock is moved now.
func Mono() time.Duration { return time.Duration(atomic.LoadInt64(&file[1])) }

// NoFence says that stores and pools of worker numbers keep no fence.
func NoFence() bool { return atomic.LoadInt64(&file[2]) != 0 }

// NoBegin says that no other columns are asked for where a series begins.
func NoBegin() bool { return atomic.LoadInt64(&file[3]) != 0 }

// NoShare says that a process takes no turns with its predecessor or successor.
func NoShare() bool { return atomic.LoadInt64(&file[4]) != 0 }

// NoSeal says that a series which goes on in another place stays open in the one before.
func NoSeal() bool { return atomic.LoadInt64(&file[5]) != 0 }
