// Package ascii looks at texts whose character set may not be known: their ASCII bytes, of which
// names and words of SQL are made. A byte from 0x80 on is part of no letter here and equal to
// nothing but itself.
package ascii
