package scramble

import (
	"crypto/aes"
	"crypto/cipher"
	"encoding/binary"
	"sync"
)

// rounds is how many rounds FF1 has (NIST SP 800-38G, algorithm 7).
const rounds = 10

// ff1 is FF1 of NIST SP 800-38G for strings of width bits (radix 2) and an empty tweak: a
// permutation of the numbers below 2^width. Step numbers in comments are those of algorithm 7.
type ff1 struct {
	aes   cipher.Block
	width int
	u, v  int    // of the halves: step 1
	b     int    // bytes of a half: step 3
	mac   uint64 // the first and
	mac2  uint64 // the last eight bytes of P under the cipher, which begins each CBC-MAC: steps 5 and 6ii
	pool  sync.Pool
}

// newFF1 makes one for a width from 2 to 62.
func newFF1(key []byte, width int) (*ff1, error) {
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	f := &ff1{aes: block, width: width, u: width / 2, v: width - width/2}
	f.b = (f.v + 7) / 8
	p := [aes.BlockSize]byte{1, 2, 1, 0, 0, 2, rounds, byte(f.u), 0, 0, 0, byte(width)}
	block.Encrypt(p[:], p[:])
	f.mac, f.mac2 = binary.BigEndian.Uint64(p[:8]), binary.BigEndian.Uint64(p[8:])
	f.pool.New = func() any { return new([aes.BlockSize]byte) }
	return f, nil
}

// round is the number that round i makes of a half: steps 6i to 6iv. The tweak is empty and a half
// has four bytes at most, so that Q is one block, and the number is the first eight bytes of R.
func (f *ff1) round(block *[aes.BlockSize]byte, i int, half uint64) uint64 {
	binary.BigEndian.PutUint64(block[:8], f.mac)
	binary.BigEndian.PutUint64(block[8:], f.mac2^half^uint64(i)<<(8*f.b))
	f.aes.Encrypt(block[:], block[:])
	return binary.BigEndian.Uint64(block[:8])
}

// encrypt replaces each number.
func (f *ff1) encrypt(numbers []uint64) {
	block := f.pool.Get().(*[aes.BlockSize]byte)
	for k, x := range numbers {
		a, b := x>>f.v, x&(1<<f.v-1)
		for i := 0; i < rounds; i += 2 {
			a = (a + f.round(block, i, b)) & (1<<f.u - 1)
			b = (b + f.round(block, i+1, a)) & (1<<f.v - 1)
		}
		numbers[k] = a<<f.v | b
	}
	f.pool.Put(block)
}

// decrypt is the inverse of encrypt for one number.
func (f *ff1) decrypt(x uint64) uint64 {
	block := f.pool.Get().(*[aes.BlockSize]byte)
	a, b := x>>f.v, x&(1<<f.v-1)
	for i := rounds - 2; i >= 0; i -= 2 {
		b = (b - f.round(block, i+1, a)) & (1<<f.v - 1)
		a = (a - f.round(block, i, b)) & (1<<f.u - 1)
	}
	f.pool.Put(block)
	return a<<f.v | b
}
