package resp

import (
	"bufio"
	"bytes"
	"context"
	"math"
	"strings"
)

// together returns how many times a client has sent the same INCR, one after the other, of which the
// first has been read as args. It takes the others. It is 0 where they need not go together.
func (cl *client) together(r *bufio.Reader, args []string) (n uint64) {
	if cl.still(); cl.user == nil || len(args) != 2 || r.Buffered() == 0 || !strings.EqualFold(args[0], "INCR") || !cl.user.May(args[1]) {
		return 0
	}
	src, ok := cl.s.cfg.Lookup(args[1])
	if d, distant := src.(Distant); !ok || !distant || !d.Distant() {
		return 0
	}
	same := appendLength(nil, '*', len(args))
	for _, word := range args {
		same = appendBulk(same, word)
	}
	for n = 1; n < cl.most() && r.Buffered() >= len(same); n++ {
		next, err := r.Peek(len(same))
		if err != nil || !bytes.Equal(next, same) {
			break
		}
		_, _ = r.Discard(len(same)) // it is there
	}
	return n
}

// incrs answers n times INCR, which go together.
func (cl *client) incrs(ctx context.Context, b []byte, key string, n uint64) []byte {
	cl.s.answered.Add(int64(n))
	each := func(answer []byte) []byte { return append(b, bytes.Repeat(answer, int(n))...) }
	src, answer, ok := cl.source(nil, key)
	if !ok {
		return each(answer)
	}
	if answer, ok = cl.allow(nil, n); !ok {
		return each(answer)
	}
	last, err := take(ctx, src, n)
	if err != nil {
		return each(cl.failed(nil, key, n, err))
	}
	cl.s.gave(key, [2]uint64{last})
	for id := last - n + 1; id <= last; id++ {
		if id > math.MaxInt64 {
			b = appendError(b, "ERR id %d is above 2^63-1, the greatest number of the protocol", id)
			continue
		}
		b = appendInt(b, int64(id))
	}
	return b
}
