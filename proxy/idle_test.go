package proxy

import (
	"context"
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

// TestLeaving: what waits for the end of a session hears of it, before and after it was forgotten.
func TestLeaving(t *testing.T) {
	var l leaving
	l.Done()
	l.forget()
	if l.Err() != nil {
		t.Error("it is over before its end")
	}
	waiting := l.Done()
	l.end(errClosed)
	l.end(errTimeout)
	<-waiting
	l.forget()
	<-l.Done()
	if cause := context.Cause(&l); cause != errClosed { //nolint:errorlint // it is that very error
		t.Errorf("who waits hears of %v", cause)
	}
	if l.Err() == nil || l.why() != errClosed { //nolint:errorlint // it is that very error
		t.Errorf("it ended with %v, for %v", l.Err(), l.why())
	}
}

// TestLatch: it is heard of by who waits for it, before and after it was raised.
func TestLatch(t *testing.T) {
	var l latch
	before := l.wait()
	select {
	case <-before:
		t.Fatal("it is raised")
	default:
	}
	l.raise()
	<-before
	l.forget()
	<-l.wait()
}
