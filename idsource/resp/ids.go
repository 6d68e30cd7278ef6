package resp

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strconv"

	"idproxy/inside"
)

const (
	maxListed = 1 << 16 // bounds INCRBY for a source that can only list its ids
	maxNext   = 4096    // bounds what IDS.NEXT lists: an answer of 200 KB
)

// source returns the source of a key, or false with an answer why not.
func (cl *client) source(b []byte, key string) (Source, []byte, bool) {
	if b, ok := cl.mayAsk(b, key); !ok {
		return nil, b, false
	}
	src, ok := cl.s.cfg.Lookup(key)
	if !ok {
		return nil, appendError(b, "ERR there is no id source and no key '%.100s'", key), false
	}
	return src, b, true
}

// mayAsk reports whether the user may ask for a key, with an answer when not.
func (cl *client) mayAsk(b []byte, key string) ([]byte, bool) {
	if !cl.user.May(key) {
		return appendError(b, "NOPERM user '%s' has no right to the key '%.100s'", cl.user.Name, key), false
	}
	return b, true
}

// incr answers INCR and INCRBY.
func (cl *client) incr(ctx context.Context, b []byte, args []string) []byte {
	key, n := args[1], uint64(1)
	if len(args) == 3 {
		var err error
		if n, err = strconv.ParseUint(args[2], 10, 63); err != nil || n == 0 {
			return appendError(b, "ERR value is not an integer from 1 to 2^63-1: ids only go up")
		}
	}
	src, b, ok := cl.source(b, key)
	if !ok {
		return b
	}
	if _, text := src.(Texts); text {
		return appendError(b, "ERR the ids of key '%.100s' are no numbers: ask with IDS.NEXT key [n]", key)
	}
	if b, ok = cl.allow(b, n); !ok {
		return b
	}
	last, err := take(ctx, src, n)
	if err != nil {
		return cl.failed(b, key, n, err)
	}
	cl.s.gave(key, [2]uint64{last})
	if last > math.MaxInt64 {
		return appendError(b, "ERR id %d is above 2^63-1, the greatest number of the protocol", last)
	}
	return appendInt(b, int64(last))
}

// next answers IDS.NEXT.
func (cl *client) next(ctx context.Context, b []byte, args []string) []byte {
	key, n := args[1], uint64(1)
	if len(args) == 3 {
		var err error
		if n, err = strconv.ParseUint(args[2], 10, 63); err != nil || n == 0 || n > maxNext {
			return appendError(b, "ERR value is not an integer from 1 to %d", maxNext)
		}
	}
	src, b, ok := cl.source(b, key)
	if !ok {
		return b
	}
	if b, ok = cl.allow(b, n); !ok {
		return b
	}
	words := uint64(1)
	texts, wide := src.(Texts)
	if wide {
		words = 2
	}
	ids := make([]uint64, n*words)
	if err := src.Fill(ctx, ids, 1); err != nil {
		return cl.failed(b, key, n, err)
	}
	last := [2]uint64{}
	copy(last[:], ids[(n-1)*words:])
	cl.s.gave(key, last)
	if !wide && last[0] > math.MaxInt64 {
		return appendError(b, "ERR id %d is above 2^63-1, the greatest number of the protocol", last[0])
	}
	b = appendLength(b, '*', int(n))
	for i := uint64(0); i < uint64(len(ids)); i += words {
		if wide {
			b = appendBulk(b, texts.Text([2]uint64{ids[i], ids[i+1]}))
		} else {
			b = appendInt(b, int64(ids[i]))
		}
	}
	return b
}

// most is how many ids the user may have at once.
func (cl *client) most() uint64 {
	if cl.user.Most > 0 {
		return cl.user.Most
	}
	return cl.s.cfg.MaxIncrBy
}

// allow reports whether the user may have n ids now, and counts them as his; when not, with an
// answer why.
func (cl *client) allow(b []byte, n uint64) ([]byte, bool) {
	if most := cl.most(); n > most {
		return appendError(b, "ERR at most %d ids can be had at once (max_incrby)", most), false
	}
	if wait := cl.s.cfg.Users.Take(cl.user, n); wait > 0 {
		return appendError(b, "ERR user '%s' may have %d ids in a second (rate): try again in %v", cl.user.Name, cl.user.Rate, wait), false
	}
	return b, true
}

// failed answers a client that n ids were not given to.
func (cl *client) failed(b []byte, key string, n uint64, err error) []byte {
	if apart, ok := errors.AsType[apartError](err); !ok || !apart.drawn {
		cl.s.cfg.Users.GiveBack(cl.user, n)
	}
	return cl.refused(b, key, err)
}

// refused answers with an error, of which the log has what the client is not told.
func (cl *client) refused(b []byte, key string, err error) []byte {
	if moved, ok := errors.AsType[mover](err); ok {
		return appendMoved(b, key, moved.MovedTo())
	}
	cl.s.kept.Note(cl.s.cfg.Logger, err, "key", key, "user.name", cl.user.Name, "client.address", cl.addr)
	text, _ := inside.Text(err)
	return appendError(b, "ERR %s", text)
}

// take draws n consecutive ids and returns the last one.
func take(ctx context.Context, src Source, n uint64) (uint64, error) {
	var one [1]uint64
	if n == 1 {
		err := src.Fill(ctx, one[:], 1)
		return one[0], err
	}
	if r, ok := src.(Ranger); ok {
		first, err := r.Range(ctx, n)
		return first + n - 1, err
	}
	if n > maxListed {
		return 0, fmt.Errorf("at most %d ids of this source can be had at once", maxListed)
	}
	if _, ok := src.(Scrambled); ok {
		return 0, apartError{n, false}
	}
	ids := make([]uint64, n)
	if err := src.Fill(ctx, ids, 1); err != nil {
		return 0, err
	}
	if ids[n-1]-ids[0] != n-1 {
		return 0, apartError{n, true}
	}
	return ids[n-1], nil
}

// apartError says that a source has no n consecutive ids.
type apartError struct {
	n     uint64
	drawn bool // it was found when they were drawn, and they are lost
}

func (e apartError) Error() string {
	return fmt.Sprintf("this source has no %d consecutive ids: ask for fewer", e.n)
}

func (cl *client) get(_ context.Context, b []byte, args []string) []byte {
	src, b, ok := cl.source(b, args[1])
	if !ok {
		return b
	}
	return cl.appendLast(b, args[1], src)
}

// mget answers as Redis does: a key that is not there is nil, and one without the right an error
// for all.
func (cl *client) mget(_ context.Context, b []byte, args []string) []byte {
	for _, key := range args[1:] {
		if b, ok := cl.mayAsk(b, key); !ok {
			return b
		}
	}
	b = appendLength(b, '*', len(args)-1)
	for _, key := range args[1:] {
		if src, ok := cl.s.cfg.Lookup(key); ok {
			b = cl.appendLast(b, key, src)
		} else {
			b = appendNil(b, cl.version)
		}
	}
	return b
}

// appendLast appends the last id of a key that was given here, nil when there was none.
func (cl *client) appendLast(b []byte, key string, src Source) []byte {
	id, given := cl.s.lastGiven(key)
	switch texts, wide := src.(Texts); {
	case !given:
		return appendNil(b, cl.version)
	case wide:
		return appendBulk(b, texts.Text(id))
	}
	return appendBulk(b, strconv.FormatUint(id[0], 10))
}

// create answers IDS.CREATE.
func (cl *client) create(ctx context.Context, b []byte, args []string) []byte {
	key, start, step := args[1], uint64(1), uint64(0)
	for i, number := range []struct {
		name string
		to   *uint64
	}{{"start", &start}, {"step", &step}} {
		if len(args) < 3+i {
			break
		}
		n, err := strconv.ParseUint(args[2+i], 10, 63)
		if err != nil || n == 0 {
			return appendError(b, "ERR %s is not an integer from 1 to 2^63-1", number.name)
		}
		*number.to = n
	}
	b, ok := cl.mayAsk(b, key)
	switch {
	case !ok:
		return b
	case cl.s.cfg.Create == nil:
		return appendError(b, "ERR no key can be created here: the configuration names no store for it (create_in)")
	case !cl.user.Create:
		return appendError(b, "NOPERM user '%s' has no right to create keys", cl.user.Name)
	case !nameable(key) || len(key) > maxKey || key == "":
		return appendError(b, "ERR a key is 1 to %d letters, digits and signs of ASCII, without spaces", maxKey)
	}
	if err := cl.s.cfg.Create(ctx, key, start, step); err != nil {
		return cl.refused(b, key, err)
	}
	cl.s.cfg.Logger.Info("key created", "key", key, "user.name", cl.user.Name, "client.address", cl.addr)
	return appendSimple(b, "OK")
}

// maxKey is how long the name of a created key may be.
const maxKey = 64

// set answers IDS.SET.
func (cl *client) set(ctx context.Context, b []byte, args []string) []byte {
	key := args[1]
	next, err := strconv.ParseUint(args[2], 10, 63)
	if err != nil || next == 0 {
		return appendError(b, "ERR value is not an integer from 1 to 2^63-1")
	}
	src, b, ok := cl.source(b, key)
	if !ok {
		return b
	}
	if !cl.user.Set {
		return appendError(b, "NOPERM user '%s' has no right to set keys", cl.user.Name)
	}
	_, wide := src.(Texts)
	setter, can := src.(Setter)
	if wide || !can {
		return appendError(b, "ERR the ids of key '%.100s' are in no order that it could be moved along", key)
	}
	if err := setter.Advance(ctx, next-1); err != nil {
		return cl.refused(b, key, err)
	}
	cl.s.cfg.Logger.Info("key set", "key", key, "next", next, "user.name", cl.user.Name, "client.address", cl.addr)
	return appendSimple(b, "OK")
}
