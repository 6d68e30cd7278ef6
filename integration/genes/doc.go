// Package genes is ids whose low bits come from another column of the row, and bulk executions.
package genes
