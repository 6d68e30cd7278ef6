package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"idproxy/cmd/idproxy/admin"
	"idproxy/config"
)

// streams are the program's standard files.
type streams struct {
	in       io.Reader
	out, err io.Writer
}

// Exit statuses.
const (
	statusFine    = 0
	statusFinding = 1
	statusUsage   = 2
)

// errUsage is an error of the command line.
var errUsage = admin.ErrUsage

// errFindings says that what was to be reported has been printed.
var errFindings = errors.New("findings")

// configPath returns the file to load.
func configPath(flag string) (string, error) {
	if flag != "" {
		return flag, nil
	}
	for _, path := range []string{"idproxy.yaml", "/etc/idproxy/idproxy.yaml"} {
		if _, err := os.Stat(path); err == nil {
			return path, nil
		}
	}
	return "", fmt.Errorf("%w: no --config given, and neither ./idproxy.yaml nor /etc/idproxy/idproxy.yaml exists", errUsage)
}

// configFile is the configuration that a command reads.
type configFile struct{ path string }

// load reads it.
func (f *configFile) load() (*config.Config, error) {
	path, err := configPath(f.path)
	if err != nil {
		return nil, err
	}
	return config.Load(path)
}

// noCommand refuses what is no command, and names those that are like it.
func noCommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	cmd.SuggestionsMinimumDistance = 2
	hint := ""
	if like := cmd.SuggestionsFor(args[0]); len(like) > 0 {
		hint = ": did you mean " + strings.Join(like, " or ") + "?"
	}
	return fmt.Errorf("unknown command %q for %q%s", args[0], cmd.CommandPath(), hint)
}

// usageOf has wrong arguments count as an error of the command line.
func usageOf(valid cobra.PositionalArgs) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if err := valid(cmd, args); err != nil {
			return fmt.Errorf("%w: %w\n%s", errUsage, err, cmd.UsageString())
		}
		return nil
	}
}

// group is a command that only has others below it.
func group(c *cobra.Command) *cobra.Command {
	c.Args = usageOf(noCommand)
	c.RunE = func(cmd *cobra.Command, _ []string) error {
		return fmt.Errorf("%w: which of its commands is missing\n%s", errUsage, cmd.UsageString())
	}
	return c
}
