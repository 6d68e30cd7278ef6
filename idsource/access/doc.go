// Package access knows who may ask for ids, for which keys, and how many: of whatever protocol, over
// all of its connections to this process.
package access
