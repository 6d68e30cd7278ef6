//go:build long

package integration

// sweep: every form in every mode with every kind of trigger, several times over. It is for builds with the tag long.
const sweep = true

// randomStatements are those of TestRandomSessions, on each server.
const randomStatements = 500_000
