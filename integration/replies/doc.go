// Package replies is what replies tell besides rows: warnings, diagnostics, counts and errors, in
// which nothing of idproxy's own questions shows.
package replies
