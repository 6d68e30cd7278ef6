// Package loaddata puts ids into the data of LOAD DATA as it passes: bytes in, bytes out, in constant
// memory.
//
// Where a line begins and where its fields end depends on all that the statement says of FIELDS and
// LINES, and on the character set of the file. It also depends on how many fields the statement
// reads of a line: other rules find the end of what is left of the line. [Edit] reads as the
// servers do, MariaDB and MySQL each in its way, and copies every byte that is not an id.
package loaddata
