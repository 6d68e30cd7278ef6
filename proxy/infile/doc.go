// Package infile puts ids into the data of LOAD DATA as it passes: bytes in, bytes out, in constant
// memory.
//
// Where a line begins and where its fields end depends on all that the statement says of FIELDS and
// LINES, on the character set of the file, and on how many fields the statement reads of a line:
// what is left of the line behind these is searched for its end by other rules. [Edit] reads as the
// servers do, MariaDB and MySQL each in its way, and copies every byte that is not an id.
package infile
