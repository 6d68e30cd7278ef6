package infile

import "math"

// number is what a server makes of a field for an integer column.
type number struct {
	end      int    // the bytes up to here are the number, with blanks in front; 0: there is none
	value    uint64 // rounded, without its sign; 2^64-1 when it is greater
	negative bool
}

// parseNumber reads a field as servers do for an integer column: blanks, line ends to MariaDB
// alone, a sign, digits with a dot, an exponent; halves are rounded away from zero.
func parseNumber(b []byte, mariaDB bool) number {
	i := 0
	for i < len(b) && (b[i] == ' ' || b[i] == '\t' || mariaDB && b[i] >= '\n' && b[i] <= '\r') {
		i++
	}
	var n number
	if i < len(b) && (b[i] == '-' || b[i] == '+') {
		n.negative = b[i] == '-'
		i++
	}
	digits, shift, dot, full := 0, 0, false, false
	for ; i < len(b); i++ {
		c := b[i] - '0'
		switch {
		case c <= 9 && !full && n.value <= (math.MaxUint64-uint64(c))/10:
			n.value = n.value*10 + uint64(c)
			digits++
			if dot {
				shift--
			}
			continue
		case c <= 9:
			full = true // what does not fit any more only scales, and rounds no value to zero
			if !dot {
				shift++
			}
			continue
		case b[i] == '.' && !dot:
			dot = true
			continue
		case b[i] == '.' && mariaDB: // the first one is forgotten then: 0.40.4 is 40
			shift = 0
		}
		break
	}
	if digits == 0 {
		return number{}
	}
	if i+1 < len(b) && b[i]|0x20 == 'e' {
		n := exponent(b[i+1:])
		i += 1 + n.end
		shift += n.shift
	}
	n.end = i
	n.value = scale(n.value, shift)
	if full && shift >= 0 { // never less than it is
		n.value = math.MaxUint64
	}
	return n
}

type power struct{ end, shift int }

// exponent reads what stands behind the letter e.
func exponent(b []byte) (p power) {
	const most = 1 << 20 // no value is left of any number
	negative := false
	if len(b) > 0 && (b[0] == '-' || b[0] == '+') {
		negative = b[0] == '-'
		p.end++
	}
	for ; p.end < len(b) && b[p.end]-'0' <= 9; p.end++ {
		p.shift = min(p.shift*10+int(b[p.end]-'0'), most)
	}
	if negative {
		p.shift = -p.shift
	}
	return p
}

// scale returns v times ten to the power of shift, rounded.
func scale(v uint64, shift int) uint64 {
	for ; shift > 0 && v > 0; shift-- {
		if v > math.MaxUint64/10 {
			return math.MaxUint64
		}
		v *= 10
	}
	if shift >= 0 {
		return v
	}
	if shift < -20 {
		return 0
	}
	for ; shift < -1; shift++ {
		v /= 10 // the digits cut off do not matter: the next one decides
	}
	return v/10 + (v%10)/5
}
