package eventloop

import (
	"context"
	"errors"
	"testing"
)

var errEnded, errLater = errors.New("ended"), errors.New("later")

// TestContext: what waits for its end hears of it, before and after nobody waited.
func TestContext(t *testing.T) {
	var c Context
	c.Done()
	c.Release()
	if c.Err() != nil {
		t.Error("it is over before its end")
	}
	waiting := c.Done()
	c.End(errEnded)
	c.End(errLater)
	<-waiting
	c.Release()
	<-c.Done()
	if cause := context.Cause(&c); cause != errEnded { //nolint:errorlint // it is that very error
		t.Errorf("who waits hears of %v", cause)
	}
	if c.Err() == nil || c.Cause() != errEnded { //nolint:errorlint // it is that very error
		t.Errorf("it ended with %v, for %v", c.Err(), c.Cause())
	}
}

// TestAwait: what comes is received; where the context ends first, its cause is the error.
func TestAwait(t *testing.T) {
	var c Context
	from := make(chan int, 1)
	from <- 7
	if v, err := Await(from, &c); v != 7 || err != nil {
		t.Errorf("received %d, %v", v, err)
	}
	go c.End(errEnded)
	if v, err := Await(from, &c); v != 0 || err != errEnded { //nolint:errorlint // it is that very error
		t.Errorf("received %d, %v behind the end", v, err)
	}
}
