package scramble

import (
	"crypto/aes"
	"encoding/binary"
	"encoding/hex"
	"math/big"
	"math/rand/v2"
	"strings"
	"testing"

	"idproxy/integration/assert"
)

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
