package main

import "context"

// until returns what a read gives, or why the command ends first: a signal ends no read by itself.
func until[T any](ctx context.Context, read func() (T, error)) (given T, err error) {
	done := make(chan struct{})
	var got T
	var failed error
	go func() {
		defer close(done)
		got, failed = read()
	}()
	select {
	case <-done:
		return got, failed
	case <-ctx.Done():
		return given, context.Cause(ctx)
	}
}
