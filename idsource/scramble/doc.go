// Package scramble makes ids that tell nothing of how many there are out of numbers that count up.
//
// A [Scramble] is a bijection between the numbers below 2^(bits-1) and the ids of exactly so many
// bits, 2^(bits-1) up to 2^bits-1, under a secret key. Two numbers never have one id, and whoever has
// the key finds the number of an id.
//
// The bijection is FF1 of NIST SP 800-38G with AES, radix 2, n = bits-1 and no tweak, and the bit
// above it set. So any implementation of FF1 finds the number of an id, too. That all ids have the
// same greatest bit keeps them apart from 0, from ids that a table had before, and from those of a
// Scramble of other bits.
package scramble
