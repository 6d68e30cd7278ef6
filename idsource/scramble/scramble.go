package scramble

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"regexp"
)

// The bits that ids may have. SP 800-38G wants a million strings at least; fewer than 2^47 numbers
// would soon be used up.
const (
	LeastBits = 48
	MostBits  = 63
)

// Scramble is a bijection of numbers and ids. It is safe for concurrent use, and allocates nothing.
type Scramble struct {
	ff1  *ff1
	top  uint64 // the greatest bit of ids
	name string
}

// New makes the bijection of a key of 16, 24 or 32 bytes, for ids of so many bits.
func New(key []byte, bits int) (*Scramble, error) {
	if bits < LeastBits || bits > MostBits {
		return nil, fmt.Errorf("ids have %d to %d bits, not %d", LeastBits, MostBits, bits)
	}
	return of(key, bits)
}

// of is New for any number of bits from 3 on.
func of(key []byte, bits int) (*Scramble, error) {
	f, err := newFF1(key, bits-1)
	if err != nil {
		return nil, fmt.Errorf("a key has 16, 24 or 32 bytes, not %d", len(key))
	}
	mac := hmac.New(sha256.New, key)
	fmt.Fprintf(mac, "idproxy scramble, FF1, %d bits", bits)
	return &Scramble{ff1: f, top: 1 << (bits - 1), name: fmt.Sprintf("~%d~%s", bits, hex.EncodeToString(mac.Sum(nil)[:8]))}, nil
}

// First is the lowest id, and the number of numbers: all numbers are below it.
func (s *Scramble) First() uint64 { return s.top }

// IDs makes ids of numbers below First, each in its place.
func (s *Scramble) IDs(numbers []uint64) {
	s.ff1.encrypt(numbers)
	for i := range numbers {
		numbers[i] |= s.top
	}
}

// Number returns the number of an id; false: no number has that id.
func (s *Scramble) Number(id uint64) (number uint64, ok bool) {
	if id < s.top || id-s.top >= s.top {
		return 0, false
	}
	return s.ff1.decrypt(id - s.top), true
}

// Name stands behind the key of a series in its store: ~, the bits, ~, and 16 hexadecimal digits
// that tell keys apart and tell nothing of them. So series of two keys are two series, and each
// process knows with which key one was used.
func (s *Scramble) Name() string { return s.name }

var named = regexp.MustCompile(`^(.*)(~\d\d~)[0-9a-f]{16}$`)

// Named reports whether the key of a series in a store ends in the Name of a Scramble.
func Named(key string) bool { return named.MatchString(key) }

// Rivals returns those of the keys of a store that are the same series under another secret, with
// ids of the same bits: the ids of two such series can coincide.
func (s *Scramble) Rivals(series string, keys []string) (rivals []string) {
	mine := named.FindStringSubmatch(series + s.name)
	for _, key := range keys {
		if other := named.FindStringSubmatch(key); other != nil && other[1] == mine[1] && other[2] == mine[2] && key != mine[0] {
			rivals = append(rivals, key)
		}
	}
	return rivals
}
