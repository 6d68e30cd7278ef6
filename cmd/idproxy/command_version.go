package main

import (
	"cmp"
	"fmt"
	"io"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

func versionCommand(std streams) *cobra.Command {
	asJSON := false
	c := &cobra.Command{
		Use:     "version",
		Short:   "Print the version",
		Example: "  idproxy version --json",
		Args:    usageOf(cobra.NoArgs),
		RunE: func(*cobra.Command, []string) error {
			return show(std.out, asJSON, built(), func(w io.Writer, b build) error {
				_, err := fmt.Fprintf(w, "idproxy %s\n", b)
				return err
			})
		},
	}
	jsonFlag(c.Flags(), &asJSON)
	return c
}

// build is the version of the program, its commit and Go's.
type build struct {
	Version  string `json:"version"`
	Revision string `json:"revision,omitempty"`
	Go       string `json:"go,omitempty"`
}

func (b build) String() string {
	return strings.Join(slices.DeleteFunc([]string{b.Version, b.Revision, b.Go}, func(part string) bool { return part == "" }), " ")
}

// built is what this program was built as.
func built() build {
	b := build{Version: "(devel)"}
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
