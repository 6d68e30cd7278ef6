package main

import (
	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"
)

func manCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "man DIR",
		Short:   "Write man pages into a folder",
		Long:    "Write a man page for each command into a folder that is there, such as /usr/local/share/man/man1.",
		Example: "  idproxy man /usr/local/share/man/man1",
		Args:    usageOf(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			cmd.Root().DisableAutoGenTag = true
			return doc.GenManTree(cmd.Root(), &doc.GenManHeader{Section: "1", Source: "idproxy"}, args[0])
		},
	}
}
