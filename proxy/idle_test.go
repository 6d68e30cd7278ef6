package proxy

import (
	"testing"
	"unsafe"
)

// TestIdleSession holds what a session costs that waits for its client: the memory allocator rounds
// up, from 1,144 bytes to 1,280.
func TestIdleSession(t *testing.T) {
	if n := unsafe.Sizeof(session{}); n > 1144 {
		t.Errorf("a session takes %d bytes, want 1,144 at most", n)
	}
	if n := unsafe.Sizeof(inlet{}); n > 80 {
		t.Errorf("an inlet takes %d bytes, want 80 at most", n)
	}
}
