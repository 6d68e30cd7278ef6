package proxy

import (
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/go-mysql-org/go-mysql/mysql"

	"idproxy/proxy/clienterr"
	"idproxy/proxy/infile"
	"idproxy/proxy/relay"
	"idproxy/rewriter"
	"idproxy/rule"
)

// loading is a LOAD DATA LOCAL INFILE whose file is given ids as it passes.
type loading struct {
	noInserts
	s      *session
	part   part
	plan   rewriter.LoadPlan
	format infile.Format
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

// maxRanges bounds the ranges of ids that are told apart when the first row is looked for that went in.
const maxRanges = 64

// drawn are the ids that the rows of a file were given.
type drawn struct {
	generated   int
	first, last uint64
	ranges      [][2]uint64 // from the first to the last of each
}

func (d *drawn) add(first, last uint64, stride uint64) {
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

// load decides on a LOAD DATA or LOAD XML into a table with a rule.
func (d *decider) load(st *statement, p *part, cx *reading) (insertion, error) {
	if cx.prepares {
		return asItIs, d.unfilled(p, "LOAD DATA in a prepared statement", cx)
	}
	if d.observed(st, p, cx) {
		return asItIs, nil
	}
	const settings = relay.KnowMode | relay.KnowNumbers
	switch {
	case len(st.spans) > 1:
		return asItIs, errCut
	case cx.busy:
		return asItIs, lacks(needQuiet)
	}
	l := &loading{part: *p, stride: cx.snap.Increment}
	st.speller = d.speller(cx)
	err := l.plan.Read(&rewriter.Statement{Text: p.text, Mode: cx.mode, Rules: p.rules, Table: p.facts.Table, Speller: &st.speller})
	form, unsupported := errors.AsType[*rewriter.Unsupported](err)
	_, lacking := errors.AsType[errIncomplete](err)
	switch {
	case lacking:
		return asItIs, err
	case unsupported:
		return asItIs, d.unfilled(p, form.Form, cx)
	case err != nil: // ErrRefusedByServer
		return asItIs, nil
	case p.facts.At.Before(st.begun): // how many fields a line has must be certain: no server says when it was not
		return asItIs, errIncomplete{need{kind: needTable, table: p.name, key: string(st.key)}}
	case cx.snap.Known&settings != settings:
		return asItIs, lacks(needProbe)
	}
	charset := l.plan.Charset
	if charset == "" {
		if st.fileCharset == "" {
			return asItIs, lacks(needCharset)
		}
		charset = st.fileCharset
	}
	if form := LoadForm(&l.plan, charset); form != "" {
		return asItIs, d.unfilled(p, form, cx)
	}
	l.format = d.format(l, charset, cx)
	for i := range p.rules {
		if !d.tables.IsAdmitted(p.admission(i)) {
			return asItIs, errIncomplete{need{kind: needMax, column: p.filling(i)}}
		}
	}
	l.part.rules, l.part.columns = append([]*rule.Rule(nil), p.rules...), append([]rule.Column(nil), p.columns...)
	if err := d.begins(st, p, cx); err != nil {
		return asItIs, err
	}
	l.part.name, l.part.asked = relay.CloneName(p.name), p.asked
	st.order, st.facts = l, nil // errors of rows are the file's
	if p.head.Effects(p.text)&rewriter.SetsLastID != 0 {
		st.touch |= relay.TouchLastID
	}
	return alone, nil
}

// LoadForm says why a file cannot get ids as it passes; it is empty when it can. charset
// is that of the file.
func LoadForm(plan *rewriter.LoadPlan, charset string) string {
	if _, known := infile.CharsetOf(charset); !known {
		return "LOAD DATA of a file in character set " + charset
	}
	f := separated(plan)
	if err := f.Check(); err != nil {
		return "LOAD DATA with " + err.Error()
	}
	return ""
}

// separated is how the statement cuts its file.
func separated(plan *rewriter.LoadPlan) infile.Format {
	f := infile.Format{FieldTerm: plan.FieldTerm, LineStart: plan.LineStart, LineTerm: plan.LineTerm, Enclosed: infile.None, Escape: infile.None}
	if len(plan.Enclosed) > 0 {
		f.Enclosed = int(plan.Enclosed[0])
	}
	if len(plan.Escaped) > 0 {
		f.Escape = int(plan.Escaped[0])
	}
	return f
}

// format is how the server will read the file.
func (d *decider) format(l *loading, charset string, cx *reading) infile.Format {
	f := separated(&l.plan)
	f.Skip, f.Fields, f.Bytes = l.plan.Skip, l.plan.Fields, l.plan.Bytes
	f.Charset, _ = infile.CharsetOf(charset)
	f.MariaDB, f.KeepZero = cx.mode.MariaDB, cx.mode.NoAutoValueOnZero
	f.Strict = l.plan.Replace && cx.snap.Strict
	for i, at := range l.plan.At {
		f.Columns = append(f.Columns, infile.Column{Field: at, Text: l.part.columns[i].Text, Unsigned: l.part.columns[i].Unsigned})
	}
	return f
}

// ready makes the load ready, and draws the first ids of columns that the file does not have: a source that has none is an
// error while nothing has been sent.
func (l *loading) ready(s *session) error {
	n := len(l.part.rules)
	l.s = s
	l.chunks, l.greatest, l.advanced = make([]chunk, n), make([]uint64, n), make([]uint64, n)
	for k := range l.chunks {
		if l.format.Columns[k].Field != infile.Absent {
			continue
		}
		if err := l.fetch(k); err != nil {
			return err
		}
	}
	return nil
}

// fetch gets the next ids of a column. Those that it holds are used up before there is an error.
func (l *loading) fetch(k int) error {
	c, rule := &l.chunks[k], l.part.rules[k]
	from, err := l.s.idsFor(&l.part, k)
	if err != nil {
		return err
	}
	c.size = min(max(4*c.size, smallChunk), largeChunk)
	c.ids, c.used = append(c.ids[:0], make([]uint64, c.size)...), 0
	held, err := from.Some(l.s.ctx, c.ids, l.stride)
	c.ids = c.ids[:held]
	if err != nil {
		return clienterr.OutOfIDs(rule, err)
	}
	return nil
}

// Next returns the next id of a column.
func (l *loading) Next(k int) (uint64, error) {
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
func (l *loading) record(k int) {
	c := &l.chunks[k]
	used := c.ids[:c.used]
	c.ids, c.used = c.ids[c.used:], 0
	if len(used) == 0 {
		return
	}
	l.s.l.srv.Stats.IDs.Add(int64(len(used)))
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

// Explicit checks an id that the file brings against the column's rule.
func (l *loading) Explicit(k int, id infile.Explicit) error {
	r := l.part.rules[k]
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

// advance moves the sources past the explicit ids that are about to be sent.
func (l *loading) advance() error {
	for k, n := range l.greatest {
		if n <= l.advanced[k] {
			continue
		}
		rule := l.part.rules[k]
		from, err := l.s.idsOf(rule, l.part.columns[k], l.part.name, l.part.facts)
		if err != nil {
			return err
		}
		if err := from.Advance(l.s.ctx, n); err != nil {
			return clienterr.OutOfIDs(rule, err)
		}
		l.advanced[k] = n
	}
	return nil
}

// expect is what is to be expected of the reply, before the file has passed.
func (l *loading) expect() relay.Expect {
	return relay.Expect{Form: relay.FormLoad, Packet: l.part.rules[0].Packet, Askable: !l.part.columns[0].Text, Table: l.part.facts.Name}
}

// tell puts into e what the file was given so far.
func (l *loading) Tell(e *relay.Expect) {
	l.mu.Lock()
	defer l.mu.Unlock()
	e.Generated, e.First, e.Last = l.drawn.generated, l.drawn.first, l.drawn.last
	e.Rows = e.Generated
}

// breakOff notes why the load cannot go on.
func (l *loading) breakOff(cause error) {
	e := l.s.told(cause)
	if _, ok := errors.AsType[*mysql.MyError](cause); !ok {
		e = clienterr.Unsupported(l.part.rules[0], l.part.name, "LOAD DATA of "+cause.Error())
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.broken = clienterr.BrokenOff(e, l.rows)
}

// ended notes that the client has sent all of the file.
func (l *loading) ended(seq byte) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.end, l.over = seq, true
}

// delta is what is taken off sequence number seq of the reply. That to a packet out of order is the next one to the client.
func (l *loading) Delta(seq, file byte) byte {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.broken != nil {
		return seq - (l.end + 1)
	}
	return file
}

// lost returns what a client is told whose server is gone, and the sequence number of what it sent last; nil while it sends.
func (l *loading) Lost() (e *mysql.MyError, seq byte) {
	if e = l.BrokenOff(); e == nil {
		made := l.expect()
		l.Tell(&made)
		e = relay.ErrLost([]relay.Expect{made})
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.over {
		return nil, 0
	}
	return e, l.end
}

func (l *loading) BrokenOff() *mysql.MyError {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.broken
}

// storedSQL asks for the least id of the load that is in the table.
func (l *loading) storedSQL(_ *relay.Expect, table, id []byte) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	var made []string
	for i, r := range l.drawn.ranges {
		if i == maxRanges-1 {
			r[1] = max(r[1], l.drawn.last)
		}
		made = append(made, fmt.Sprintf("%s BETWEEN %d AND %d", id, r[0], r[1]))
	}
	return fmt.Sprintf("SELECT MIN(%s) FROM %s WHERE %s", id, table, strings.Join(made, " OR "))
}

// learnCharset asks for the character set that files are in when LOAD DATA does not say.
func (s *session) learnCharset(st *statement) error {
	charset, err := s.asker().FileCharset()
	st.fileCharset = charset
	return err
}
