// Package load compares LOAD DATA LOCAL INFILE through idproxy with AUTO_INCREMENT: forms, tables,
// files drawn by chance, uploads that break off.
package load
