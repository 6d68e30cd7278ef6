//go:build !faultinject

package sources

import (
	"idproxy/idsource/segment"
	"idproxy/idsource/snowflake"
)

// fenced is the configuration as it is. Another build can leave the fence out.
func fenced(c snowflake.Config) snowflake.Config { return c }

// shares is whether the process takes turns. Another build can keep it from that.
func shares(with bool) bool { return with }

// begun is the configuration as it is. Another build can leave out where a series begins.
func begun(c segment.Config) segment.Config { return c }

// seals says whether a move seals the row before.
func seals(with bool) bool { return with }
