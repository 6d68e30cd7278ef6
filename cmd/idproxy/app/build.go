package app

import (
	"cmp"
	"runtime/debug"
	"slices"
	"strings"
)

// What the linker is told where Go does not know it, as in an image that is built without git's
// history.
var version, commit, date string

// Build is the version of the program, its commit, the commit's date, and Go's version.
type Build struct {
	Version  string `json:"version"`
	Revision string `json:"revision,omitempty"`
	Date     string `json:"date,omitempty"`
	Go       string `json:"go,omitempty"`
}

// String joins what is known.
func (b Build) String() string {
	return strings.Join(slices.DeleteFunc([]string{b.Version, b.Revision, b.Date, b.Go}, func(part string) bool { return part == "" }), " ")
}

// Built returns what this program was built as.
func Built() Build {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		info = &debug.BuildInfo{}
	}
	setting := func(key string) string {
		if i := slices.IndexFunc(info.Settings, func(s debug.BuildSetting) bool { return s.Key == key }); i >= 0 {
			return info.Settings[i].Value
		}
		return ""
	}
	return Build{
		Version:  cmp.Or(version, info.Main.Version, "(devel)"),
		Revision: cmp.Or(commit, setting("vcs.revision")),
		Date:     cmp.Or(date, setting("vcs.time")),
		Go:       info.GoVersion,
	}
}
