// Package dynamic is what idproxy cannot see in the text that it is sent: statements prepared in
// SQL, procedures, temporary tables, settings changed out of sight.
package dynamic
