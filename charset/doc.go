// Package charset knows the character sets of one and two bytes a character: which two bytes are
// one. The ranges are those of the servers' ctype tables, which differ from the standards' in
// places.
package charset
