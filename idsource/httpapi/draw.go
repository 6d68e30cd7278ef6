package httpapi

import (
	"context"
	"errors"
	"io"
	"math"
	"net/http"
	"strconv"

	"idproxy/idsource"
	"idproxy/idsource/access"
	"idproxy/inside"
)

// maxListed bounds the ids of a source that can only list them: 16 bytes each until they are sent.
const maxListed = 1 << 16

// maxLists bounds those of all requests together: clients take their time to read.
const maxLists = 32 * maxListed

// ids are what one request got.
type ids struct {
	first, n uint64   // of a segment: so many from the first on
	words    []uint64 // of any other source: its ids, of two words each where it is a Texts
	wide     Texts    // nil: they are numbers
}

// count is how many there are.
func (d *ids) count() uint64 {
	switch {
	case d.wide != nil:
		return uint64(len(d.words) / 2)
	case d.words != nil:
		return uint64(len(d.words))
	}
	return d.n
}

// append appends the id of a place.
func (d *ids) append(b []byte, i uint64) []byte {
	switch {
	case d.wide != nil:
		return append(b, d.wide.Text([2]uint64(d.words[2*i:]))...)
	case d.words != nil:
		return strconv.AppendUint(b, d.words[i], 10)
	}
	return strconv.AppendUint(b, d.first+i, 10)
}

// greatest is the last id, where they are numbers.
func (d *ids) greatest() uint64 {
	if d.words != nil {
		return d.words[len(d.words)-1]
	}
	return d.first + d.n - 1
}

// flushAt is how many bytes of a long list are held before they are sent.
const flushAt = 32 << 10

// writeList writes all ids between what opens and what closes, with quotes around each or without.
// An error is that the client is gone: the ids are a gap.
func (d *ids) writeList(w io.Writer, open, quote, last string) {
	b := append(make([]byte, 0, 64), open...)
	for i := range d.count() {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(d.append(append(b, quote...), i), quote...)
		if len(b) >= flushAt {
			if _, err := w.Write(b); err != nil {
				return
			}
			b = b[:0]
		}
	}
	_, _ = w.Write(append(b, last...)) // nobody is left to be told
}

// request is what a client asks for.
type request struct {
	token string
	key   string
	n     uint64
	cut   bool // to as many as there may be; otherwise more are refused
	kind  kind
}

// kind is which sources an API has ids of.
type kind uint8

const (
	anyKind   kind = iota
	numbers        // segments and snowflakes
	segments       // numbers in ranges
	series         // those, and scrambled ones
	composite      // numbers of time, worker and sequence: snowflakes
)

// has reports whether a source is of the kind.
func (k kind) has(src Source) bool {
	_, ranges := src.(Ranger)
	_, wide := src.(Texts)
	_, scrambled := src.(Scrambled)
	switch k {
	case numbers:
		return !wide
	case segments:
		return ranges
	case series:
		return ranges || scrambled
	case composite:
		return !ranges && !wide && !scrambled
	}
	return true
}

// source returns the source of a key that the token may ask for.
func (s *Server) source(r *http.Request, q *request) (*access.User, Source, *problem) {
	u := s.userOf(q.token)
	if u == nil {
		s.kept.Warn(s.cfg.Logger, "token", "token for ids is missing or wrong", "client.address", r.RemoteAddr)
		return nil, nil, noToken(q.token)
	}
	if !u.May(q.key) {
		return nil, nil, notAllowed(u.Name, q.key)
	}
	src, ok := s.cfg.Lookup(q.key)
	if !ok || !q.kind.has(src) {
		return nil, nil, noKey(q.key)
	}
	return u, src, nil
}

// draw draws the ids of a request. Whatever the client asks for, the number is bounded before
// anything is made for it.
func (s *Server) draw(r *http.Request, q *request) (*ids, *problem) {
	u, src, p := s.source(r, q)
	if p != nil {
		return nil, p
	}
	most := s.most(u)
	if _, ranges := src.(Ranger); !ranges {
		most = min(most, maxListed)
	}
	if q.cut {
		q.n = min(q.n, most)
	}
	if q.n > most {
		return nil, tooMany(q.key, q.n, most)
	}
	if wait := s.cfg.Users.Take(u, q.n); wait > 0 {
		return nil, tooFast(u.Name, u.Rate, wait)
	}
	d, err := s.drawFrom(r.Context(), src, q.n)
	if err != nil {
		if r.Context().Err() == nil { // of who hangs up it is not known whether they were drawn
			s.cfg.Users.GiveBack(u, q.n)
		}
		if p, ok := errors.AsType[*problem](err); ok {
			return nil, p
		}
		s.kept.Note(s.cfg.Logger, err, "key", q.key, "user.name", u.Name, "client.address", r.RemoteAddr)
		text, _ := inside.Text(err)
		if errors.Is(err, idsource.TooMany) {
			return nil, tooManyOfSource(text)
		}
		return nil, noIDs(err, text)
	}
	if q.kind != anyKind && d.greatest() > math.MaxInt64 {
		return nil, tooHigh(q.key, d.greatest())
	}
	return d, nil
}

func (s *Server) drawFrom(ctx context.Context, src Source, n uint64) (*ids, error) {
	if ranges, ok := src.(Ranger); ok {
		first, err := ranges.Range(ctx, n)
		if !errors.Is(err, idsource.Apart) {
			return &ids{first: first, n: n}, err
		}
	}
	switch {
	case n > maxListed:
		return nil, tooManyListed(n)
	case s.listed.Add(int64(n)) > maxLists:
		s.listed.Add(-int64(n))
		return nil, busy()
	}
	context.AfterFunc(ctx, func() { s.listed.Add(-int64(n)) }) // it ends with the request
	d := &ids{words: make([]uint64, n)}
	if wide, ok := src.(Texts); ok {
		d.wide, d.words = wide, make([]uint64, 2*n)
	}
	return d, src.Fill(ctx, d.words, 1)
}
