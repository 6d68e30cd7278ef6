package app

import (
	"cmp"
	"runtime/debug"
	"slices"
	"strings"
)

// Build is the version of the program, its commit and Go's.
type Build struct {
	Version  string `json:"version"`
	Revision string `json:"revision,omitempty"`
	Go       string `json:"go,omitempty"`
}

// String joins what is known.
func (b Build) String() string {
	return strings.Join(slices.DeleteFunc([]string{b.Version, b.Revision, b.Go}, func(part string) bool { return part == "" }), " ")
}

// Built returns what this program was built as.
func Built() Build {
	b := Build{Version: "(devel)"}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return b
	}
	b.Version, b.Go = cmp.Or(info.Main.Version, b.Version), info.GoVersion
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" {
			b.Revision = s.Value
		}
	}
	return b
}
