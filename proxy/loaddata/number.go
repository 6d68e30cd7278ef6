package loaddata

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
	r := numberReader{text: b}
	r.blanks(mariaDB)
	negative := r.sign()
	d := r.decimal(mariaDB)
	if d.digits == 0 {
		return number{}
	}
	shift := d.shift + r.exponent()
	n := number{end: r.at, value: scale(d.value, shift), negative: negative}
	if d.full && shift >= 0 { // never less than it is
		n.value = math.MaxUint64
	}
	return n
}

type numberReader struct {
	text []byte
	at   int
}

// next returns the next byte, 0 at the end, which is in no number.
func (r *numberReader) next() byte {
	if r.at == len(r.text) {
		return 0
	}
	return r.text[r.at]
}

func (r *numberReader) blanks(mariaDB bool) {
	for c := r.next(); c == ' ' || c == '\t' || mariaDB && within(c, '\n', '\r'); c = r.next() {
		r.at++
	}
}

// sign takes a sign, and reports whether it is that of a number below zero.
func (r *numberReader) sign() (negative bool) {
	c := r.next()
	if c == '-' || c == '+' {
		r.at++
	}
	return c == '-'
}

// decimal is digits with a dot: value times ten to the power of shift.
type decimal struct {
	value  uint64
	digits int // that are in value
	shift  int
	dot    bool
	full   bool // value has no room for more
}

func (r *numberReader) decimal(mariaDB bool) (d decimal) {
	for ; ; r.at++ {
		c := r.next()
		switch {
		case within(c, '0', '9'):
			d.add(uint64(c - '0'))
		case c == '.' && !d.dot:
			d.dot = true
		default:
			if c == '.' && mariaDB { // the first one is forgotten then: 0.40.4 is 40
				d.shift = 0
			}
			return d
		}
	}
}

// add adds a digit. One that does not fit any more only scales, and rounds no value to zero.
func (d *decimal) add(digit uint64) {
	d.full = d.full || d.value > (math.MaxUint64-digit)/10
	if d.full {
		if !d.dot {
			d.shift++
		}
		return
	}
	d.value = d.value*10 + digit
	d.digits++
	if d.dot {
		d.shift--
	}
}

// exponent takes the letter e and what stands behind it, and returns the power of ten.
func (r *numberReader) exponent() (shift int) {
	const most = 1 << 20 // no value is left of any number
	if r.at+1 >= len(r.text) || r.next()|0x20 != 'e' {
		return 0
	}
	r.at++
	negative := r.sign()
	for c := r.next(); within(c, '0', '9'); c = r.next() {
		shift = min(shift*10+int(c-'0'), most)
		r.at++
	}
	if negative {
		return -shift
	}
	return shift
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
