package snowflake

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"idproxy/idsource"
)

// Layout is how the bits of a snowflake id are shared out, from the top unless
// it has another order: time since the epoch, worker number, sequence within one
// unit of time.
type Layout struct {
	Time       uint          // bits
	Datacenter uint          // upper bits of the worker number that are configured apart; may be 0
	Worker     uint          // the rest of the worker number
	Sequence   uint          // bits
	Unit       time.Duration // of the time, default 1ms

	order string // fields from the top, by their first letters; empty for "tws"
}

// The names of fields, behind their numbers of bits, in layouts of another order.
const (
	workerName   = "worker"
	sequenceName = "seq"
)

// ParseLayout reads "41/10/12" (time, worker, sequence), "41/5+5/12" (the
// worker split in datacenter and worker) and, for units other than a
// millisecond, "32s/8/13" or "39x10ms/16/8". In another order worker and sequence
// are named: "39x10ms/8seq/16worker". Every part has at least one bit, all
// together at most 63, so that ids are positive in a signed BIGINT; 53 and less
// are exact in JavaScript.
func ParseLayout(text string) (Layout, error) {
	l, err := parseLayout(text)
	if err != nil {
		return Layout{}, fmt.Errorf("layout %q: %w", text, err)
	}
	return l, nil
}

func parseLayout(text string) (l Layout, err error) {
	parts := strings.Split(text, "/")
	if len(parts) != 3 {
		return l, errors.New("it is not of the form time/worker/sequence")
	}
	var bits struct{ time, worker, sequence string }
	order := ""
	for _, part := range parts {
		if number, is := strings.CutSuffix(part, workerName); is {
			bits.worker, order = number, order+"w"
		} else if number, is := strings.CutSuffix(part, sequenceName); is {
			bits.sequence, order = number, order+"s"
		} else {
			bits.time, order = part, order+"t"
		}
	}
	switch order {
	case "ttt":
		bits.time, bits.worker, bits.sequence, order = parts[0], parts[1], parts[2], ""
	case "tws": // what it is without the names
		order = ""
	case "tsw", "wts", "wst", "stw", "swt":
	default:
		return l, fmt.Errorf("in an order of its own it names worker and sequence, each once, as in 39x10ms/8%s/16%s", sequenceName, workerName)
	}
	if strings.TrimRight(bits.time, "msx0123456789") != "" {
		return l, fmt.Errorf("%q is not a number of bits with a unit", bits.time)
	}
	number, unit := splitUnit(bits.time)
	dc, worker, split := strings.Cut(bits.worker, "+")
	if !split {
		dc, worker = "", dc
	}
	l.Time, err = parseBits(number, err)
	l.Unit, err = parseUnit(unit, err)
	if split {
		l.Datacenter, err = parseBits(dc, err)
	}
	l.Worker, err = parseBits(worker, err)
	l.Sequence, err = parseBits(bits.sequence, err)
	if err == nil {
		err = l.check()
	}
	if err != nil {
		return Layout{}, err
	}
	l.order = order
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
	worker := strconv.Itoa(int(l.Worker))
	if l.Datacenter > 0 {
		worker = fmt.Sprintf("%d+%d", l.Datacenter, l.Worker)
	}
	if l.order == "" {
		return fmt.Sprintf("%d%s/%s/%d", l.Time, unit, worker, l.Sequence)
	}
	fields := map[rune]string{
		't': fmt.Sprintf("%d%s", l.Time, unit), 'w': worker + workerName, 's': fmt.Sprintf("%d%s", l.Sequence, sequenceName),
	}
	var parts []string
	for _, f := range l.order {
		parts = append(parts, fields[f])
	}
	return strings.Join(parts, "/")
}

// Ascends says whether ids ascend with their time.
func (l Layout) Ascends() bool { return l.order == "" || l.order[0] == 't' }

// Consecutive says whether ids of one unit of time and one worker are
// consecutive.
func (l Layout) Consecutive() bool { return l.order == "" || l.order[2] == 's' }

// pool is what all workers of one pool must agree on: how the worker number is
// configured makes no difference to the ids.
func (l Layout) pool() string {
	l.Worker, l.Datacenter = l.WorkerBits(), 0
	return l.String()
}

// Shape is what a pool of the layout is for, and how many worker numbers it may have.
func (l Layout) Shape(epoch time.Time) (s idsource.Shape, numbers uint64) {
	return idsource.Shape{Layout: l.pool(), Epoch: epoch}, 1 << l.WorkerBits()
}

// maxTime is the greatest timestamp, in units since the epoch.
func (l Layout) maxTime() uint64 { return 1<<l.Time - 1 }

// compose makes an id of a packed word (time and sequence) and a worker number.
func (l *Layout) compose(word, worker uint64) uint64 {
	ts, seq := word>>l.Sequence, word&(1<<l.Sequence-1)
	if l.order != "" {
		return l.composeInOrder(ts, worker, seq)
	}
	return ts<<(l.Datacenter+l.Worker+l.Sequence) | worker<<l.Sequence | seq
}

func (l *Layout) composeInOrder(ts, worker, seq uint64) (id uint64) {
	for i := range len(l.order) {
		switch l.order[i] {
		case 't':
			id = id<<l.Time | ts
		case 'w':
			id = id<<l.WorkerBits() | worker
		case 's':
			id = id<<l.Sequence | seq
		}
	}
	return id
}

// Parts is an id taken apart.
type Parts struct {
	Time     uint64 // units since the epoch
	Worker   uint64 // datacenter and worker as one number
	Sequence uint64
}

// Decode takes an id apart.
func (l Layout) Decode(id uint64) (p Parts) {
	order := l.order
	if order == "" {
		order = "tws"
	}
	for i := len(order) - 1; i >= 0; i-- {
		var value *uint64
		var bits uint
		switch order[i] {
		case 't':
			value, bits = &p.Time, l.Time
		case 'w':
			value, bits = &p.Worker, l.WorkerBits()
		case 's':
			value, bits = &p.Sequence, l.Sequence
		}
		if i == 0 { // what has too many bits is seen there
			*value = id
			break
		}
		*value = id & (1<<bits - 1)
		id >>= bits
	}
	return p
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
// it is less than one, with which no source starts. problem is empty when they do not.
func (l Layout) Ending(epoch, now time.Time) (problem string, refused bool) {
	end := l.End(epoch)
	left := end.Sub(now)
	if left >= 2*year {
		return "", false
	}
	problem = fmt.Sprintf("layout %s with epoch %s runs out of timestamps on %s",
		l, epoch.Format(time.DateOnly), end.Format(time.DateOnly))
	if left < year {
		problem += ", less than a year from now"
	}
	return problem, left < year
}
