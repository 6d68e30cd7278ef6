// Package examples runs the examples of the folder examples, each as a reader would, and compares
// what it prints with its README.
//
// Ids of snowflakes and numbers that depend on time are left out of the comparison. What they must
// be like is a check of its own.
package examples
