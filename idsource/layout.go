package idsource

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Layout is how the bits of a snowflake id are shared out, from the top: time
// since the epoch, worker number, sequence within one unit of time.
type Layout struct {
	Time       uint          // bits
	Datacenter uint          // upper bits of the worker number that are configured apart; may be 0
	Worker     uint          // the rest of the worker number
	Sequence   uint          // bits
	Unit       time.Duration // of the time, default 1ms
}

// ParseLayout reads "41/10/12" (time, worker, sequence), "41/5+5/12" (the
// worker split in datacenter and worker) and, for units other than a
// millisecond, "32s/8/13" or "39x10ms/16/8". Every part has at least one bit,
// all together at most 63, so that ids are positive in a signed BIGINT; 53 and
// less are exact in JavaScript.
func ParseLayout(text string) (Layout, error) {
	parts := strings.Split(text, "/")
	if len(parts) != 3 {
		return Layout{}, fmt.Errorf("layout %q is not of the form time/worker/sequence", text)
	}
	var l Layout
	var err error
	digits := strings.TrimRight(parts[0], "msx0123456789")
	if digits != "" {
		return Layout{}, fmt.Errorf("layout %q: %q is not a number of bits with a unit", text, parts[0])
	}
	number, unit := splitUnit(parts[0])
	dc, worker, split := strings.Cut(parts[1], "+")
	if !split {
		dc, worker = "", dc
	}
	l.Time, err = parseBits(number, err)
	l.Unit, err = parseUnit(unit, err)
	if split {
		l.Datacenter, err = parseBits(dc, err)
	}
	l.Worker, err = parseBits(worker, err)
	l.Sequence, err = parseBits(parts[2], err)
	if err == nil {
		err = l.check()
	}
	if err != nil {
		return Layout{}, fmt.Errorf("layout %q: %w", text, err)
	}
	return l, nil
}

func splitUnit(part string) (number, unit string) {
	i := strings.IndexAny(part, "msx")
	if i < 0 {
		return part, ""
	}
	return part[:i], part[i:]
}

func parseBits(text string, before error) (uint, error) {
	if before != nil {
		return 0, before
	}
	n, err := strconv.ParseUint(text, 10, 8)
	if err != nil || n == 0 || n > 62 || text[0] < '1' || text[0] > '9' {
		return 0, fmt.Errorf("%q is not a number of bits from 1 to 62", text)
	}
	return uint(n), nil
}

func parseUnit(text string, before error) (time.Duration, error) {
	if before != nil {
		return 0, before
	}
	switch text {
	case "", "ms":
		return time.Millisecond, nil
	case "s":
		return time.Second, nil
	case "x10ms":
		return 10 * time.Millisecond, nil
	}
	return 0, fmt.Errorf("the unit of time is s, ms or x10ms, not %q", text)
}

func (l Layout) check() error {
	if sum := l.Time + l.WorkerBits() + l.Sequence; sum > 63 {
		return fmt.Errorf("%d bits are more than 63", sum)
	}
	if l.WorkerBits() > 32 || l.Sequence > 32 {
		return errors.New("worker and sequence have at most 32 bits each")
	}
	return nil
}

// WorkerBits is the width of the whole worker number.
func (l Layout) WorkerBits() uint { return l.Datacenter + l.Worker }

// String is the canonical form; ParseLayout reads it back.
func (l Layout) String() string {
	unit := map[time.Duration]string{time.Second: "s", 10 * time.Millisecond: "x10ms"}[l.Unit]
	if l.Datacenter > 0 {
		return fmt.Sprintf("%d%s/%d+%d/%d", l.Time, unit, l.Datacenter, l.Worker, l.Sequence)
	}
	return fmt.Sprintf("%d%s/%d/%d", l.Time, unit, l.Worker, l.Sequence)
}

// pool is what all workers of one pool must agree on: how the worker number is
// configured makes no difference to the ids.
func (l Layout) pool() string {
	l.Worker, l.Datacenter = l.WorkerBits(), 0
	return l.String()
}

// maxTime is the greatest timestamp, in units since the epoch.
func (l Layout) maxTime() uint64 { return 1<<l.Time - 1 }

// compose makes an id of a packed word (time and sequence) and a worker number.
func (l *Layout) compose(word, worker uint64) uint64 {
	ts := word >> l.Sequence
	return ts<<(l.Datacenter+l.Worker+l.Sequence) | worker<<l.Sequence | word&(1<<l.Sequence-1)
}

// Parts is an id taken apart.
type Parts struct {
	Time     uint64 // units since the epoch
	Worker   uint64 // datacenter and worker as one number
	Sequence uint64
}

// Decode takes an id apart.
func (l Layout) Decode(id uint64) Parts {
	return Parts{
		Time:     id >> (l.WorkerBits() + l.Sequence),
		Worker:   id >> l.Sequence & (1<<l.WorkerBits() - 1),
		Sequence: id & (1<<l.Sequence - 1),
	}
}

const year = 365 * 24 * time.Hour

// End is when the timestamps run out. A layout of many bits and large units
// lasts longer than a Duration can say; it ends in the far future then.
func (l Layout) End(epoch time.Time) time.Time {
	const far = 1 << 62
	if l.maxTime() >= uint64(far/l.Unit) {
		return epoch.Add(far)
	}
	return epoch.Add(time.Duration(l.maxTime()) * l.Unit)
}

// Ending says that the timestamps run out within two years of now, and whether
// it is less than one, with which no source starts. text is empty when they do not.
func (l Layout) Ending(epoch, now time.Time) (text string, refused bool) {
	end := l.End(epoch)
	left := end.Sub(now)
	if left >= 2*year {
		return "", false
	}
	text = fmt.Sprintf("layout %s with epoch %s runs out of timestamps on %s",
		l, epoch.Format(time.DateOnly), end.Format(time.DateOnly))
	if left < year {
		text += ", less than a year from now"
	}
	return text, left < year
}
