// Package packages is what deploy/package makes of idproxy: its scripts and completions, and the
// Debian package in a Debian that systemd boots.
package packages
