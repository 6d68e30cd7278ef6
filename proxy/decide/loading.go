package decide

import (
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/go-mysql-org/go-mysql/mysql"

	"idproxy/proxy/clienterr"
	"idproxy/proxy/loaddata"
	"idproxy/proxy/protocol"
	"idproxy/proxy/wire"
	"idproxy/rewriter"
	"idproxy/rule"
)

// Loading is a LOAD DATA LOCAL INFILE whose file is given ids as it passes.
type Loading struct {
	noInserts
	s      Carrier
	part   Part
	plan   rewriter.LoadPlan
	Format loaddata.Format
	stride uint64

	// Of each column, toServer's:
	chunks   []chunk
	greatest []uint64 // explicit id that the source must be moved past
	advanced []uint64 // explicit id that it was moved past
	rows     int

	mu     sync.Mutex
	drawn  drawn          // of the first column
	broken *mysql.MyError // why the load was broken off
	end    byte           // sequence number of the packet that ended the file
	over   bool           // it has come
}

// chunk is what was drawn for one column and not used yet.
type chunk struct {
	ids  []uint64
	used int
	size int // of the next one
}

// Chunks grow from smallChunk to largeChunk ids: a small file wastes few, a large one asks seldom.
const (
	smallChunk = 16
	largeChunk = 4096
)

// maxRanges bounds the ranges of ids that are told apart when the first row is looked for that went
// in.
const maxRanges = 64

// drawn are the ids that the rows of a file were given.
type drawn struct {
	generated   int
	first, last uint64
	ranges      [][2]uint64 // from the first to the last of each
	scattered   bool        // the source's ids lie anywhere
}

func (d *drawn) add(first, last uint64, stride uint64) {
	if d.scattered { // each is a range of its own, and others' ids stand between them
		if d.ranges == nil {
			d.first = first
		}
		if d.last = last; len(d.ranges) < maxListed {
			d.ranges = append(d.ranges, [2]uint64{first, last})
		}
		return
	}
	if d.ranges == nil {
		d.first = first
	}
	d.last = last
	n := len(d.ranges)
	if n > 0 && (first == d.ranges[n-1][1]+stride || n == maxRanges && first > d.ranges[n-1][1]) {
		d.ranges[n-1][1] = last
		return
	}
	if n < maxRanges {
		d.ranges = append(d.ranges, [2]uint64{first, last})
	}
}

// ready makes the load ready, and draws the first ids of columns that the file does not have: a
// source that has none is an error while nothing has been sent.
func (l *Loading) ready(s Carrier) error {
	n := len(l.part.Rules)
	l.s = s
	l.chunks, l.greatest, l.advanced = make([]chunk, n), make([]uint64, n), make([]uint64, n)
	for k := range l.chunks {
		if l.Format.Columns[k].Field != loaddata.Absent {
			continue
		}
		if err := l.fetch(k); err != nil {
			return err
		}
	}
	return nil
}

// fetch gets the next ids of a column. Those that it holds are used up before there is an error.
func (l *Loading) fetch(k int) error {
	c, rule := &l.chunks[k], l.part.Rules[k]
	from, err := idsFor(l.s, &l.part, k)
	if err != nil {
		return err
	}
	if _, scattered := from.Scattered(); scattered && k == 0 {
		l.mu.Lock()
		l.drawn.scattered = true
		l.mu.Unlock()
	}
	c.size = min(max(4*c.size, smallChunk), largeChunk)
	c.ids, c.used = append(c.ids[:0], make([]uint64, c.size)...), 0
	held, err := from.Some(l.s.Context(), c.ids, l.stride)
	c.ids = c.ids[:held]
	if err != nil {
		return clienterr.OutOfIDs(rule, err)
	}
	return nil
}

// Next returns the next id of a column.
func (l *Loading) Next(k int) (uint64, error) {
	c := &l.chunks[k]
	if c.used == len(c.ids) {
		l.record(k)
		if err := l.fetch(k); err != nil {
			return 0, err
		}
	}
	c.used++
	if k == 0 {
		l.rows++
	}
	return c.ids[c.used-1], nil
}

// record counts the ids of a chunk that were used.
func (l *Loading) record(k int) {
	c := &l.chunks[k]
	used := c.ids[:c.used]
	c.ids, c.used = c.ids[c.used:], 0
	if len(used) == 0 {
		return
	}
	l.s.Drew(l.part.Rules[k], len(used))
	if k > 0 {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.drawn.generated += len(used)
	start := 0
	for i := 1; i <= len(used); i++ { // a source may leave gaps in a chunk
		if i == len(used) || used[i] != used[i-1]+l.stride {
			l.drawn.add(used[start], used[i-1], l.stride)
			start = i
		}
	}
}

// RecordAll counts the ids that were used of all columns.
func (l *Loading) RecordAll() {
	for k := range l.chunks {
		l.record(k)
	}
}

// Explicit checks an id that the file brings against the column's rule.
func (l *Loading) Explicit(k int, id loaddata.Explicit) error {
	r := l.part.Rules[k]
	switch {
	case !id.Known && l.part.columns[k].Text: // no source gives such an id
	case r.Explicit == rule.Reject:
		return clienterr.Explicit(r)
	case r.Explicit != rule.Advance:
	case !id.Known:
		return clienterr.NoNumber(r)
	case !id.Negative:
		l.greatest[k] = max(l.greatest[k], id.Number)
	}
	return nil
}

// Advance moves the sources past the explicit ids that are about to be sent.
func (l *Loading) Advance() error {
	for k, n := range l.greatest {
		if n <= l.advanced[k] {
			continue
		}
		rule := l.part.Rules[k]
		from, err := l.s.IDsOf(rule, l.part.columns[k], l.part.Name, l.part.Facts)
		if err != nil {
			return err
		}
		if err := from.Advance(l.s.Context(), n); err != nil {
			return clienterr.Unmoved(rule, err)
		}
		l.advanced[k] = n
	}
	return nil
}

// expect is what is to be expected of the reply, before the file has passed.
func (l *Loading) expect() protocol.Expect {
	return protocol.Expect{Form: protocol.FormLoad, Packet: l.part.Rules[0].Packet, Askable: !l.part.columns[0].Text, Table: l.part.Facts.Name}
}

// Tell puts into e what the file was given so far.
func (l *Loading) Tell(e *protocol.Expect) {
	l.mu.Lock()
	defer l.mu.Unlock()
	e.Generated, e.First, e.Last = l.drawn.generated, l.drawn.first, l.drawn.last
	e.Rows = e.Generated
}

// BreakOff notes why the load cannot go on.
func (l *Loading) BreakOff(cause error) {
	e := l.s.Told(cause)
	if _, ok := errors.AsType[*mysql.MyError](cause); !ok {
		e = clienterr.Unsupported(l.part.Rules[0], l.part.Name, "LOAD DATA of "+cause.Error()).MyError
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.broken = clienterr.BrokenOff(e, l.rows)
}

// Ended notes that the client has sent all of the file.
func (l *Loading) Ended(seq byte) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.end, l.over = seq, true
}

// Delta is what is taken off sequence number seq of the reply. That to a packet out of order is the
// next one to the client.
func (l *Loading) Delta(seq, file byte) byte {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.broken != nil {
		return seq - (l.end + 1)
	}
	return file
}

// Lost returns what a client is told whose server is gone, and the sequence number of what it sent
// last; nil while it sends.
func (l *Loading) Lost() (e *mysql.MyError, seq byte) {
	if e = l.BrokenOff(); e == nil {
		made := l.expect()
		l.Tell(&made)
		e = protocol.ErrLost([]protocol.Expect{made})
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.over {
		return nil, 0
	}
	return e, l.end
}

func (l *Loading) BrokenOff() *mysql.MyError {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.broken
}

// StoredSQL asks for the least id of the load that is in the table.
func (l *Loading) StoredSQL(_ *protocol.Expect, table, id []byte) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	var made []string
	for i, r := range l.drawn.ranges {
		if i == maxRanges-1 && !l.drawn.scattered {
			r[1] = max(r[1], l.drawn.last)
		}
		made = append(made, fmt.Sprintf("%s BETWEEN %d AND %d", id, r[0], r[1]))
	}
	return fmt.Sprintf("SELECT MIN(%s) FROM %s WHERE %s", id, table, strings.Join(made, " OR "))
}

func (l *Loading) Draw(s Carrier) ([]protocol.Expect, int, error) {
	l.part.askAgain()
	if err := l.ready(s); err != nil {
		return nil, 0, err
	}
	return []protocol.Expect{l.expect()}, 0, nil
}

func (l *Loading) Write(_ Carrier, st *Command) (payload []byte, made bool, err error) {
	out := append(append(st.Out[:0], 0, 0, 0, 0), st.Prefix...)
	out = append(out, st.Text[:l.part.span.Start]...)
	out = l.plan.Append(out, l.part.Text)
	st.Out = append(out, st.Text[l.part.span.End:st.End]...)
	return st.Out[wire.HeaderLen:], true, nil
}

func (l *Loading) Begin(s Carrier, _ *Command) error {
	s.Filled()
	return nil
}

func (l *Loading) ReplyHandler(st *Command, expected []protocol.Expect) protocol.ReplyHandler {
	st.reply = protocol.NewInsertReply(expected, st.Seq)
	st.reply.Load = l
	return st.reply
}

func (l *Loading) Asks() bool { return true }

func (l *Loading) Asked() *Part { return &l.part }
