package scramble

import (
	"crypto/aes"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"math/big"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"idproxy/integration/assert"
)

func make1(t testing.TB, key string, bits int) *Scramble {
	t.Helper()
	b := assert.Of(hex.DecodeString(key)).Must(t)
	s := assert.Of(of(b, bits)).Must(t)
	return s
}

const testKey = "2b7e151628aed2a6abf7158809cf4f3c"

// TestBijection takes all numbers of small widths: each id comes once, has its greatest bit, and
// gives its number back.
func TestBijection(t *testing.T) {
	for bits := 3; bits <= 17; bits++ {
		s := make1(t, testKey, bits)
		seen := make([]bool, 2*s.First())
		ids, fixed := make([]uint64, s.First()), 0
		for n := range ids {
			ids[n] = uint64(n)
		}
		s.IDs(ids)
		for n, id := range ids {
			assert.MustTrue(t, id >= s.First() && id < 2*s.First() && !seen[id], "%d bits: number %d has id %d: twice %v", bits, n, id, seen[id])
			seen[id] = true
			back, ok := s.Number(id)
			assert.MustTrue(t, ok && back == uint64(n), "%d bits: id %d is of number %d, %v; want %d", bits, id, back, ok, n)
			if id-s.First() == uint64(n) {
				fixed++
			}
		}
		assert.True(t, bits < 10 || fixed <= 16, "%d bits: %d numbers stay as they are", bits, fixed) // a random permutation has one on average
	}
}

// TestKept holds the ids of some numbers as they were when the first table got them: a table keeps
// its ids for ever.
func TestKept(t *testing.T) {
	for _, tt := range []struct {
		key  string
		bits int
		want []uint64 // of the numbers 1, 2, 3 and the last
		name string
	}{
		{testKey, 48, []uint64{233485934859478, 227986213817756, 183525690992532, 212593963220168}, "~48~8eb7ee50373fc67c"},
		{testKey, 53, []uint64{6024266921328287, 8930610991045064, 6623896567589486, 6643263921078081}, "~53~99de1e5358233011"},
		{testKey, 62, []uint64{4488239848062240975, 2415171230646924059, 2609317683357640235, 3659867803433484560}, "~62~9b2daa591a01efcc"},
		{testKey, 63, []uint64{8060581843051979861, 6714672581112894210, 4738096687251404379, 6757457636091068263}, "~63~5732fb9f3fc33f34"},
		{testKey + testKey, 53, []uint64{8298652165608491, 7149505710405824, 6916842252379746, 5120222259535853}, "~53~bf3463adc8c9d23e"},
	} {
		s := make1(t, tt.key, tt.bits)
		ids := []uint64{1, 2, 3, s.First() - 1}
		if s.IDs(ids); !slices.Equal(ids, tt.want) || s.Name() != tt.name {
			t.Errorf("key of %d bytes, %d bits: %d, named %q; want %d, named %q", len(tt.key)/2, tt.bits, ids, s.Name(), tt.want, tt.name)
		}
	}
}

// TestWide tries the widths that are used: ids of neighbours and of random numbers are different,
// have their bits and give their numbers back.
func TestWide(t *testing.T) {
	rng := rand.New(rand.NewPCG(48, 63))
	for bits := LeastBits; bits <= MostBits; bits++ {
		s := make1(t, testKey, bits)
		numbers := []uint64{0, 1, s.First() - 2, s.First() - 1}
		for range 1000 {
			n := rng.Uint64N(s.First() - 1)
			numbers = append(numbers, n, n+1)
		}
		slices.Sort(numbers)
		numbers = slices.Compact(numbers)
		ids := slices.Clone(numbers)
		s.IDs(ids)
		for i, id := range ids {
			n, ok := s.Number(id)
			assert.MustTrue(t, ok && n == numbers[i] && id>>(bits-1) == 1, "%d bits: number %d has id %d, of number %d, %v", bits, numbers[i], id, n, ok)
		}
		slices.Sort(ids)
		assert.True(t, len(slices.Compact(ids)) == len(numbers), "%d bits: two numbers have one id", bits)
		for _, id := range []uint64{0, 1, s.First() - 1, 2 * s.First(), 1<<64 - 1} {
			n, ok := s.Number(id)
			assert.True(t, !ok, "%d bits: %d is of number %d, and no number has it", bits, id, n)
		}
	}
}

// TestSpread: ids of neighbours lie anywhere, so that neither order nor distance tells how many were
// made in between. The control is a bijection that adds a secret.
func TestSpread(t *testing.T) {
	const n = 4096
	ascents := func(ids []uint64) (up int) {
		for i := 1; i < len(ids); i++ {
			if ids[i] > ids[i-1] {
				up++
			}
		}
		return up
	}
	ids, plain := make([]uint64, n), make([]uint64, n)
	for i := range ids {
		ids[i], plain[i] = uint64(i+1), uint64(i+1)+1<<40
	}
	make1(t, testKey, 53).IDs(ids)
	fair := func(up int) bool { return up > n/2-200 && up < n/2+200 } // 32 is one standard deviation and more
	up := ascents(ids)
	assert.True(t, fair(up), "%d of %d ids are above the one in front", up, n)
	up = ascents(plain)
	assert.True(t, !fair(up), "control: %d of %d ascend", up, n)
}

// TestKeys: other keys, of whatever length, have other ids and other names.
func TestKeys(t *testing.T) {
	names := map[string]bool{}
	for _, key := range []string{testKey, testKey[2:] + "00", testKey + testKey[:16], testKey + testKey} {
		for _, bits := range []int{52, 53} {
			s := make1(t, key, bits)
			assert.True(t, !names[s.Name()] && Named("order_id"+s.Name()), "name %s", s.Name())
			names[s.Name()] = true
		}
	}
	assert.True(t, !Named("order_id") && !Named("order~53~id"), "a plain key is taken for a scrambled one")
	for _, size := range []int{0, 15, 17, 33} {
		assert.Of(New(make([]byte, size), 53)).Fails(t, fmt.Sprintf("a key of %d bytes is taken", size), "")
	}
	for _, bits := range []int{0, LeastBits - 1, MostBits + 1} {
		assert.Of(New(make([]byte, 16), bits)).Fails(t, fmt.Sprintf("ids of %d bits are made", bits), "")
	}
}

// TestRivals: the same series, as many bits, another key.
func TestRivals(t *testing.T) {
	s, other, wider := make1(t, testKey, 53), make1(t, testKey+testKey, 53), make1(t, testKey+testKey, 54)
	keys := []string{"a", "a" + s.Name(), "b" + other.Name(), "a" + wider.Name(), "a~b" + other.Name()}
	rivals := s.Rivals("a", keys)
	assert.True(t, len(rivals) == 0, "%q", rivals)
	rivals = s.Rivals("a", append(keys, "a"+other.Name()))
	assert.True(t, slices.Equal(rivals, []string{"a" + other.Name()}), "%q", rivals)
}

func TestAllocations(t *testing.T) {
	s, ids := make1(t, testKey, 53), make([]uint64, 16)
	if n := testing.AllocsPerRun(100, func() {
		for i := range ids {
			ids[i] = uint64(i)
		}
		s.IDs(ids)
		s.Number(ids[3])
	}); n > 0 {
		t.Errorf("%v allocations", n)
	}
}

// FuzzScramble: any key, width and pair of numbers.
func FuzzScramble(f *testing.F) {
	f.Add([]byte("0123456789abcdef"), uint8(53), uint64(1), uint64(2))
	f.Add(make([]byte, 32), uint8(63), uint64(1)<<62-1, uint64(0))
	f.Fuzz(func(t *testing.T, key []byte, bits uint8, a, b uint64) {
		s, err := New(key, int(bits))
		if err != nil {
			return
		}
		a, b = a%s.First(), b%s.First()
		ids := []uint64{a, b}
		s.IDs(ids)
		assert.True(t, (ids[0] == ids[1]) == (a == b), "numbers %d and %d have ids %d and %d", a, b, ids[0], ids[1])
		for i, n := range []uint64{a, b} {
			back, ok := s.Number(ids[i])
			assert.True(t, ok && back == n, "id %d of number %d is of number %d, %v", ids[i], n, back, ok)
		}
		n, ok := s.Number(a)
		assert.True(t, !ok || a >= s.First(), "%d is below all ids, and of number %d", a, n)
	})
}

func BenchmarkIDs(b *testing.B) {
	for _, size := range []int{1, 1000} {
		for name, key := range map[string]string{"aes128": testKey, "aes256": testKey + testKey} {
			b.Run(map[int]string{1: "one/", 1000: "thousand/"}[size]+name, func(b *testing.B) {
				s, ids := make1(b, key, 63), make([]uint64, size)
				b.ReportAllocs()
				n := uint64(0)
				for b.Loop() {
					for i := range ids {
						n++
						ids[i] = n
					}
					s.IDs(ids)
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*size), "ns/id")
			})
		}
	}
}

// reference is FF1.Encrypt of NIST SP 800-38G, algorithm 7, step by step: for any radix, tweak and
// length, with large numbers. Digits are those of base 36.
func reference(t *testing.T, key, tweak []byte, radix int, text string) string {
	t.Helper()
	block := assert.Of(aes.NewCipher(key)).Must(t)
	n := len(text)
	u := n / 2 // 1
	v := n - u
	a, b := text[:u], text[u:] // 2
	most := new(big.Int).Exp(big.NewInt(int64(radix)), big.NewInt(int64(v)), nil)
	bytes := (new(big.Int).Sub(most, big.NewInt(1)).BitLen() + 7) / 8 // 3
	d := 4*((bytes+3)/4) + 4                                          // 4
	p := []byte{1, 2, 1, byte(radix >> 16), byte(radix >> 8), byte(radix), 10, byte(u)}
	p = binary.BigEndian.AppendUint32(p, uint32(n))
	p = binary.BigEndian.AppendUint32(p, uint32(len(tweak))) // 5
	for i := range 10 {
		q := append([]byte{}, tweak...) // 6i
		for (len(q)+1+bytes)%16 != 0 {
			q = append(q, 0)
		}
		q = append(q, byte(i))
		q = append(q, number(t, radix, b).FillBytes(make([]byte, bytes))...)
		var mac [16]byte // 6ii
		for all := append(append([]byte{}, p...), q...); len(all) > 0; all = all[16:] {
			for k := range mac {
				mac[k] ^= all[k]
			}
			block.Encrypt(mac[:], mac[:])
		}
		s := append([]byte{}, mac[:]...) // 6iii
		for j := uint64(1); len(s) < d; j++ {
			next := mac
			binary.BigEndian.PutUint64(next[8:], binary.BigEndian.Uint64(next[8:])^j)
			block.Encrypt(next[:], next[:])
			s = append(s, next[:]...)
		}
		y := new(big.Int).SetBytes(s[:d]) // 6iv
		m := u                            // 6v
		if i%2 == 1 {
			m = v
		}
		c := y.Add(y, number(t, radix, a)) // 6vi
		c.Mod(c, new(big.Int).Exp(big.NewInt(int64(radix)), big.NewInt(int64(m)), nil))
		digits := c.Text(radix) // 6vii
		a, b = b, strings.Repeat("0", m-len(digits))+digits
	}
	return a + b
}

func number(t *testing.T, radix int, digits string) *big.Int {
	t.Helper()
	n, ok := new(big.Int).SetString(digits, radix)
	assert.MustTrue(t, ok, "%q is no number of radix %d", digits, radix)
	return n
}

// TestReference: the reference gives what NIST's samples for FF1 say.
func TestReference(t *testing.T) {
	const key128 = "2b7e151628aed2a6abf7158809cf4f3c"
	const key192 = key128 + "ef4359d8d580aa4f"
	const key256 = key192 + "7f036d6f04fc6a94"
	for _, tt := range []struct {
		name, key, tweak string
		radix            int
		in, want         string
	}{
		{"sample 1", key128, "", 10, "0123456789", "2433477484"},
		{"sample 2", key128, "39383736353433323130", 10, "0123456789", "6124200773"},
		{"sample 3", key128, "3737373770717273373737", 36, "0123456789abcdefghi", "a9tv40mll9kdu509eum"},
		{"sample 4", key192, "", 10, "0123456789", "2830668132"},
		{"sample 5", key192, "39383736353433323130", 10, "0123456789", "2496655549"},
		{"sample 6", key192, "3737373770717273373737", 36, "0123456789abcdefghi", "xbj3kv35jrawxv32ysr"},
		{"sample 7", key256, "", 10, "0123456789", "6657667009"},
		{"sample 8", key256, "39383736353433323130", 10, "0123456789", "1001623463"},
		{"sample 9", key256, "3737373770717273373737", 36, "0123456789abcdefghi", "xs8a0azh2avyalyzuwd"},
	} {
		key := assert.Of(hex.DecodeString(tt.key)).Must(t)
		tweak := assert.Of(hex.DecodeString(tt.tweak)).Must(t)
		assert.Equal(t, tt.name, reference(t, key, tweak, tt.radix, tt.in), tt.want)
	}
}

// TestFF1: what makes ids is the reference at radix 2, for every width and length of key.
func TestFF1(t *testing.T) {
	rng := rand.New(rand.NewPCG(38, 7))
	for width := 2; width < MostBits; width++ {
		for _, size := range []int{16, 24, 32} {
			key := make([]byte, size)
			for i := range key {
				key[i] = byte(rng.Uint64())
			}
			f := assert.Of(newFF1(key, width)).Must(t)
			x := [1]uint64{rng.Uint64() & (1<<width - 1)}
			text := new(big.Int).SetUint64(x[0]).Text(2)
			text = strings.Repeat("0", width-len(text)) + text
			want := number(t, 2, reference(t, key, nil, 2, text)).Uint64()
			f.encrypt(x[:])
			assert.True(t, x[0] == want, "width %d, key of %d bytes: %s became %b, want %b", width, size, text, x[0], want)
		}
	}
}
