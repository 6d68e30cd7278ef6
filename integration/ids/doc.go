// Package ids is where ids come from: stores that are down, restored, emptied or shared, series
// that begin, join and advance, several proxies at once.
package ids
