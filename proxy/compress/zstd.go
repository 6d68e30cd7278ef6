package compress

import (
	"errors"
	"sync"

	"github.com/klauspost/compress/zstd"
)

// A block of zstd takes four bytes at least, and stands for 128 KiB at most.
const (
	zstdBlock = 4
	zstdMost  = 128 << 10
)

var decoders = sync.Pool{New: func() any {
	d, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecodeAllCapLimit(true))
	if err != nil {
		panic(err) // it knows these options
	}
	return d
}}

// Encoders of each speed. The slowest of the library takes tens of megabytes, and finds next to
// nothing more in pieces as small as these.
var (
	fast   = newEncoders(zstd.SpeedFastest)
	middle = newEncoders(zstd.SpeedDefault)
	better = newEncoders(zstd.SpeedBetterCompression)
)

// encoders returns those for a level of zstd's own.
func encoders(level byte) *sync.Pool {
	switch {
	case level < 3:
		return fast
	case level < 7:
		return middle
	}
	return better
}

func newEncoders(speed zstd.EncoderLevel) *sync.Pool {
	return &sync.Pool{New: func() any {
		e, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(speed), zstd.WithEncoderConcurrency(1),
			zstd.WithLowerEncoderMem(true), zstd.WithEncoderCRC(false), zstd.WithWindowSize(maxPiece))
		if err != nil {
			panic(err) // it knows these options
		}
		return e
	}}
}

type zstandard struct{ encoders *sync.Pool }

func (zstandard) String() string { return "zstd" }

func (zstandard) most(n int) int { return (n/zstdBlock + 1) * zstdMost }

func (z zstandard) compress(dst, src []byte) []byte {
	e := z.encoders.Get().(*zstd.Encoder)
	defer z.encoders.Put(e)
	return e.EncodeAll(src, dst)
}

func (zstandard) expand(dst, src []byte) error {
	d := decoders.Get().(*zstd.Decoder)
	defer decoders.Put(d)
	out, err := d.DecodeAll(src, dst[:0:len(dst)])
	switch {
	case err != nil:
		return err
	case len(out) < len(dst):
		return errShorter
	}
	return nil
}

var errShorter = errors.New("less comes out than the header says")
