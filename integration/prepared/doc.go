// Package prepared is statements of the binary protocol that idproxy prepares again, holds, forgets
// and cleans up behind.
package prepared
