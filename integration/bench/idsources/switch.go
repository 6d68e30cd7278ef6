package idsources

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"idproxy/idsource"
	"idproxy/idsource/segment"
)

// switching is how ranges follow each other.
type switching struct {
	name  string
	gap   uint64
	fetch time.Duration
}

// switches measures each call of Fill while ranges of a fixed size follow each other every few
// milliseconds. Others take ids in between, so that every range has an end. The last line has a
// store that cannot keep up: it shows that the measurement sees a wait.
func switches(ctx context.Context, out io.Writer, length time.Duration) error {
	fmt.Fprintf(out, "\n### Where one range of %d ids ends and the next begins: each Fill of one id\n\n", rangeSize)
	fmt.Fprint(out, "| ranges | calls | number | p50 | p99 | p99.9 | p99.99 | max |\n|---|---|---:|---:|---:|---:|---:|---:|\n")
	for _, s := range []switching{
		{"store answers after 1 ms, other proxies take ids in between", 1, fetch},
		{"store answers after 1 ms, this proxy alone", 0, fetch},
		{"negative control: store answers after 5 ms, too slow", 1, 5 * fetch},
	} {
		if err := s.measure(ctx, out, length); err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
	}
	return nil
}

// A range of this size lasts one goroutine that reads the clock for each id about two fetches of a
// millisecond.
const rangeSize = 50_000

func (s switching) measure(ctx context.Context, out io.Writer, length time.Duration) (err error) {
	source, err := segment.New(segment.Config{
		Name: "ids", Store: &store{delay: s.fetch, gap: s.gap}, Step: rangeSize, StepPolicy: segment.StepFixed,
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, source.Close(ctx)) }()
	if _, err := s.fill(ctx, source, length/10); err != nil { // the pace is not known at first
		return err
	}
	seen, err := s.fill(ctx, source, length)
	if err != nil {
		return err
	}
	seen.all.write(out, s.name, "all")
	if s.gap > 0 {
		seen.first.write(out, s.name, "first of a range")
	}
	return nil
}

// latencies are those of all calls, and of the calls that got the first id of a range.
type latencies struct{ all, first histogram }

func (s switching) fill(ctx context.Context, source idsource.Series, length time.Duration) (*latencies, error) {
	seen := new(latencies)
	var room [1]uint64
	ids, last := room[:], uint64(0)
	began := time.Now()
	for before := time.Duration(0); before < length; {
		if err := source.Fill(ctx, ids, 1); err != nil {
			return nil, err
		}
		now := time.Since(began)
		seen.all.add(now - before)
		if ids[0] != last+1 && last != 0 {
			seen.first.add(now - before)
		}
		last, before = ids[0], now
	}
	return seen, nil
}
