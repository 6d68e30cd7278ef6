// Package file keeps id sources in a folder of the local file system: the
// positions of segment keys, how they are tuned, and the fences of worker numbers. It is the
// embedded default. What it keeps is unique on this host only: two hosts with
// a folder each issue the same ids.
//
// A Store creates its folder only when there is none. In a folder that exists,
// a file that is missing is an error and never a fresh start, since a fresh
// start issues ids again. Every change is written to a new file, synced,
// renamed over the old one, and the folder synced, before the call returns.
//
// The positions belong to one process at a time and each worker number to one
// process at a time, by flock. Two processes of one host may share a folder for
// their worker numbers. While a process takes the place of another one, both share the positions:
// each has them for one change at a time, and reads them anew. Within a process several sources may
// use one number. How series are tuned
// belongs to nobody: any process changes it at any time, and those that draw from them obey.
//
// A Store is safe for concurrent use. It opens nothing until it is used; while
// the folder cannot be used, each call tries again and answers with the cause.
package file
