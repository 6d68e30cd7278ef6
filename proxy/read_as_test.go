package proxy

import (
	"testing"

	"idproxy/rewriter"
)

func TestWithQuotes(t *testing.T) {
	for _, tt := range []struct{ modes, ansi, backslash, both string }{
		{"", "ANSI_QUOTES", "NO_BACKSLASH_ESCAPES", "ANSI_QUOTES,NO_BACKSLASH_ESCAPES"},
		{"STRICT_ALL_TABLES,NO_BACKSLASH_ESCAPES", "STRICT_ALL_TABLES,ANSI_QUOTES", "STRICT_ALL_TABLES,NO_BACKSLASH_ESCAPES", "STRICT_ALL_TABLES,ANSI_QUOTES,NO_BACKSLASH_ESCAPES"},
		{
			"REAL_AS_FLOAT,PIPES_AS_CONCAT,ANSI_QUOTES,IGNORE_SPACE,ANSI", "REAL_AS_FLOAT,PIPES_AS_CONCAT,IGNORE_SPACE,ANSI,ANSI_QUOTES",
			"REAL_AS_FLOAT,PIPES_AS_CONCAT,IGNORE_SPACE,NO_BACKSLASH_ESCAPES", "REAL_AS_FLOAT,PIPES_AS_CONCAT,IGNORE_SPACE,ANSI,ANSI_QUOTES,NO_BACKSLASH_ESCAPES",
		},
	} {
		for want, mode := range map[string]rewriter.Mode{tt.ansi: {ANSIQuotes: true}, tt.backslash: {NoBackslashEscapes: true}, tt.both: {ANSIQuotes: true, NoBackslashEscapes: true}} {
			if got := withQuotes(tt.modes, mode); got != want {
				t.Errorf("%q with %+v: %q, want %q", tt.modes, mode, got, want)
			}
		}
	}
}
