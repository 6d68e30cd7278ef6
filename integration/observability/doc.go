// Package observability is what an operator sees: metrics, health, the status page and its API, compared
// with what clients saw and what stands in the tables.
package observability
