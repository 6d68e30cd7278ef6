package compress

import (
	"bytes"
	"errors"
	"io"
	"sync"

	"github.com/klauspost/compress/zlib"
)

// zlibLevel is that of what the client gets; DESIGN.md has what others cost.
const zlibLevel = 1

// deflateRatio is the most that a byte of deflate stands for: 258 bytes in two bits.
const deflateRatio = 1032

var deflaters = sync.Pool{New: func() any {
	w, err := zlib.NewWriterLevel(nil, zlibLevel)
	if err != nil {
		panic(err) // there is no such level
	}
	return w
}}

// inflaters holds readers. One is made from a stream, so that there is none before the first.
var inflaters sync.Pool

type deflate struct{}

func (deflate) String() string { return "zlib" }

func (deflate) most(n int) int { return n * deflateRatio }

func (deflate) compress(dst, src []byte) []byte {
	out := bytes.NewBuffer(dst)
	w := deflaters.Get().(*zlib.Writer)
	defer deflaters.Put(w)
	w.Reset(out)
	_, _ = w.Write(src) // a buffer takes everything
	_ = w.Close()
	return out.Bytes()
}

func (deflate) expand(dst, src []byte) error {
	in := bytes.NewReader(src)
	r, ok := inflaters.Get().(io.ReadCloser)
	var err error
	if ok {
		err = r.(zlib.Resetter).Reset(in, nil)
	} else {
		r, err = zlib.NewReader(in)
	}
	if err != nil {
		return err
	}
	defer inflaters.Put(r)
	if _, err := io.ReadFull(r, dst); err != nil {
		return err
	}
	var more [1]byte
	switch n, err := io.ReadFull(r, more[:]); { // it looks at the checksum, too
	case n > 0:
		return errLonger
	case !errors.Is(err, io.EOF):
		return err
	}
	return nil
}

var errLonger = errors.New("more comes out than the header says")
