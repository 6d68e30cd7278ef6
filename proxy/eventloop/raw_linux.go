package eventloop

import (
	"io"
	"syscall"
	"unsafe"
)

// These calls never block, so the scheduler need not know of them.

// poll returns how many events there are now.
func poll(epoll int, events []syscall.EpollEvent) int {
	n, _, errno := syscall.RawSyscall6(syscall.SYS_EPOLL_PWAIT, uintptr(epoll), uintptr(unsafe.Pointer(&events[0])), uintptr(len(events)), 0, 0, 0)
	if errno != 0 {
		return 0
	}
	return int(n)
}

// read reads what is there. It returns io.EOF at the end, and ErrNotNow.
func read(fd int, b []byte) (int, error) {
	for {
		n, _, errno := syscall.RawSyscall(syscall.SYS_READ, uintptr(fd), uintptr(unsafe.Pointer(unsafe.SliceData(b))), uintptr(len(b)))
		switch {
		case errno == 0 && n == 0:
			return 0, io.EOF
		case errno == 0:
			return int(n), nil
		case errno != syscall.EINTR:
			return 0, errno
		}
	}
}

// write writes as much as there is room for: n is less than len(b) with an error only.
func write(fd int, b []byte) (n int, err error) {
	for n < len(b) {
		rest := b[n:]
		w, _, errno := syscall.RawSyscall6(syscall.SYS_SENDTO, uintptr(fd), uintptr(unsafe.Pointer(unsafe.SliceData(rest))), uintptr(len(rest)), syscall.MSG_NOSIGNAL, 0, 0)
		switch errno {
		case 0:
			n += int(w)
		case syscall.EINTR:
		default:
			return n, errno
		}
	}
	return n, nil
}
