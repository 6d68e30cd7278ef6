package compress

import "fmt"

// Method is how a connection is compressed.
type Method struct{ coder }

// coder compresses pieces, each by itself.
type coder interface {
	fmt.Stringer
	// compress appends src, compressed.
	compress(dst, src []byte) []byte
	// expand fills dst with what src holds, which must be as long.
	expand(dst, src []byte) error
	// most returns an upper bound of what n bytes can hold.
	most(n int) int
}

// Zlib is the method of CLIENT_COMPRESS.
func Zlib() Method { return Method{deflate{}} }

// MaxLevel is the greatest level of zstd. The least is 1.
const MaxLevel = 22

// Zstd is the method of CLIENT_ZSTD_COMPRESSION_ALGORITHM, with the level that the client asks for.
func Zstd(level byte) (Method, error) {
	if level < 1 || level > MaxLevel {
		return Method{}, fmt.Errorf("zstd has no level %d, but 1 to %d", level, MaxLevel)
	}
	return Method{zstandard{encoders(level)}}, nil
}
