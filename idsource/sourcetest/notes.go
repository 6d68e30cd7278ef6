package sourcetest

import (
	"context"
	"errors"
	"maps"
	"strings"
	"sync"
	"testing"
	"time"

	"idproxy/idsource"
)

// Notes has two processes leave each other notes. What one writes the other reads, and is told of.
func Notes(t *testing.T, one, other idsource.Notes) {
	ctx, cancel := context.WithCancel(t.Context())
	told := make(chan map[string]string, 100)
	var watching sync.WaitGroup
	defer watching.Wait()
	defer cancel()
	watching.Go(func() {
		other.Watch(ctx, func(all map[string]string) { told <- all }, func(err error) { t.Errorf("watch: %v", err) })
	})
	wait := func(want map[string]string) {
		t.Helper()
		for limit := time.After(time.Minute); ; {
			select {
			case got := <-told:
				if maps.Equal(got, want) {
					return
				}
			case <-limit:
				t.Fatalf("nobody was told of %q", want)
			}
		}
	}
	wait(map[string]string{})
	long := strings.Repeat("é", 30_000)
	write := func(name, text string) {
		t.Helper()
		if err := one.Write(t.Context(), name, text); err != nil {
			t.Fatal(err)
		}
	}
	write("gone", "") // there is none
	write("a", "1")
	wait(map[string]string{"a": "1"})
	write("a", "2")
	write("A", "ü'\"\\%")
	write("user:b/c", long)
	want := map[string]string{"a": "2", "A": "ü'\"\\%", "user:b/c": long}
	wait(want)
	if all, err := other.All(t.Context()); err != nil || !maps.Equal(all, want) {
		t.Errorf("%d notes, %v", len(all), err)
	}
	write("user:b/c", "")
	write("a", "")
	wait(map[string]string{"A": "ü'\"\\%"})
	write("A", "")
	ended, end := context.WithCancelCause(t.Context())
	end(errors.New("ended"))
	if _, err := one.All(ended); err == nil {
		t.Error("notes are read by nobody")
	}
}
