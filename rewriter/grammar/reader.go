package grammar

import (
	"bytes"
	"errors"
	"slices"
	"sync/atomic"
	"unicode/utf8"

	"idproxy/rewriter"
	"idproxy/rule"
)

// Reader is the second reader. It remembers the shapes of statements that were compared, and asks
// TiDB's parser only about new ones. It is safe for concurrent use.
type Reader struct {
	Agreed atomic.Uint64 // statements of a new shape that both readers read alike
	Unread atomic.Uint64 // those that TiDB's parser cannot read: the plan's reading stands
	// those that it reads otherwise: they are refused, and compared again when they come again
	Differs atomic.Uint64

	shapes shapes
}

// New returns a reader that remembers about capacity shapes of statements.
func New(capacity int) *Reader {
	size := ways
	for size < capacity {
		size *= 2
	}
	return &Reader{shapes: make(shapes, size)}
}

// Check returns nil when s may be rewritten as p says, which has read it; or else how the second
// reader differs. It costs no allocation when the shape of s is known.
func (r *Reader) Check(s *rewriter.Statement, p *rewriter.Plan) error {
	var room [16]uint64
	shapes := p.Shapes(room[:0])
	if r.shapes.hasAll(shapes) {
		return nil
	}
	err := compare(s, p)
	switch {
	case err == nil:
		r.Agreed.Add(1)
	case errors.Is(err, errUnread):
		r.Unread.Add(1)
	default:
		r.Differs.Add(1)
		return err
	}
	for _, shape := range shapes {
		r.shapes.add(shape)
	}
	return nil
}

// wholeText is the size up to which a statement is compared as it is; where that cannot be, and
// above, it is reduced first.
const wholeText = 4 << 10

// compare lets TiDB's parser read s and what p makes of it.
func compare(s *rewriter.Statement, p *rewriter.Plan) error {
	if foreignColumns(s) {
		return errUnread
	}
	if len(s.Text) <= wholeText && plainText(s) {
		if err := compareWhole(s, p); !errors.Is(err, errUnread) {
			return err
		}
	}
	short := p.Reduce(s)
	if len(short.Text) > maxReduced {
		return errUnread
	}
	var q rewriter.Plan
	if err := q.Read(short); err != nil {
		return errUnread
	}
	return compareWhole(short, &q)
}

// maxReduced bounds what the second reader is given: its parser takes far more memory than its
// text.
const maxReduced = 256 << 10

// plainText reports whether TiDB's parser takes the text as the server does but for its grammar: it
// reads UTF-8 alone, runs version comments of any version, has some of its own, and takes MySQL's
// dollar quotes for names, and a backslash in "x" for an escape also where that is a name.
func plainText(s *rewriter.Statement) bool {
	if !s.Mode.MariaDB && bytes.Count(s.Text, []byte("$")) > 1 || s.Mode.ANSIQuotes && bytes.IndexByte(s.Text, '\\') >= 0 {
		return false
	}
	for _, c := range [...]string{"/*!", "/*M!", "/*T!"} {
		if bytes.Contains(s.Text, []byte(c)) {
			return false
		}
	}
	return utf8.Valid(s.Text) && (s.Mode.Charset == rewriter.SingleByte || !hasHigh(s.Text))
}

// foreignColumns reports whether what a plan writes may have the name of a column in another
// character set than UTF-8.
func foreignColumns(s *rewriter.Statement) bool {
	foreign := func(name string) bool {
		if s.Speller == nil || !hasHigh([]byte(name)) {
			return false
		}
		spelled, err := s.Speller.Spell(name)
		return err != nil || spelled != name
	}
	if slices.ContainsFunc(s.Rules, func(r *rule.Rule) bool { return foreign(r.Column) }) {
		return true
	}
	return s.Table != nil && slices.ContainsFunc(s.Table.Columns, func(c rule.Column) bool { return foreign(c.Name) })
}

func hasHigh(text []byte) bool {
	for _, c := range text {
		if c >= utf8.RuneSelf {
			return true
		}
	}
	return false
}

// firstID is far from the ids of applications, so that one that a plan put in the wrong place is
// not taken for theirs.
const firstID = 7_770_000_000_000_000_000

// perRule is how far the ids of one rule are from those of the next.
const perRule = 1_000_000_000_000

func compareWhole(s *rewriter.Statement, p *rewriter.Plan) error {
	before, err := parse(string(s.Text), s.Mode)
	if err != nil {
		return err
	}
	switch {
	case p.Selected != (before.Select != nil):
		return differ("rows of a query, or not")
	case p.Selected:
		return compareQuery(s, p, before)
	}
	ids := make([][]uint64, len(p.Columns))
	for i := range ids {
		for n := range s.Rules[i].IDs.Words(p.Columns[i].Generated) {
			ids[i] = append(ids[i], firstID+uint64(i)*perRule+uint64(n))
		}
	}
	after, err := parse(string(p.Append(nil, s.Text, ids)), s.Mode)
	if errors.Is(err, errUnread) {
		return differ("with its ids it cannot be read")
	}
	if err != nil {
		return err
	}
	c := comparison{s: s, p: p, ids: ids, before: before, after: after}
	return c.differ()
}
