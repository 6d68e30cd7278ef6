package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"
)

// Exit statuses.
const (
	statusFine    = 0
	statusFinding = 1
	statusUsage   = 2
)

const usage = `idproxy fills the id columns of INSERTs on their way to MySQL or MariaDB.

  idproxy serve   --config FILE                    run the proxy; logs go to stderr
  idproxy check   --config FILE [--online] [--json]
                                                   check the file; with --online also servers, tables and stores
  idproxy explain --config FILE [--schema NAME] [--online] [--verbose] "INSERT ..." | -
                                                   show what becomes of a statement, or why not
  idproxy worker  --config FILE [--source NAME] [--json] list | add N [--new-pool] | drop N ...
                                                   worker numbers of a source that leases them: show, fill the pool to N,
                                                   take free ones out; --new-pool: no id was ever issued, start at once
  idproxy source  list | show | set | import | adopt
                                                   where the sources stand, and moving them (idproxy source help)
  idproxy decode  --config FILE [--json] SOURCE ID take an id apart
  idproxy version

FILE is ./idproxy.yaml, then /etc/idproxy/idproxy.yaml, unless given.
`

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	status := run(ctx, os.Args[1:], streams{os.Stdin, os.Stdout, os.Stderr})
	stop()
	os.Exit(status)
}

// streams are the program's standard files.
type streams struct {
	in       io.Reader
	out, err io.Writer
}

// errUsage is an error of the command line.
var errUsage = errors.New("usage")

// errFindings says that what was to be reported has been printed.
var errFindings = errors.New("findings")

func run(ctx context.Context, args []string, std streams) int {
	commands := map[string]func(context.Context, []string, streams) error{
		"serve":   serve,
		"check":   check,
		"explain": explain,
		"source":  sourceCommand,
		"decode":  decode,
		"version": version,
		"worker":  worker,
	}
	name := ""
	if len(args) > 0 {
		name = args[0]
	}
	command, known := commands[name]
	switch {
	case name == "help" || name == "-h" || name == "--help":
		fmt.Fprint(std.out, usage)
		return statusFine
	case !known:
		fmt.Fprint(std.err, usage)
		return statusUsage
	}
	err := command(ctx, args[1:], std)
	switch {
	case err == nil, errors.Is(err, flag.ErrHelp):
		return statusFine
	case errors.Is(err, errFindings):
		return statusFinding
	}
	fmt.Fprintf(std.err, "idproxy: %v\n", err)
	if errors.Is(err, errUsage) {
		return statusUsage
	}
	return statusFinding
}

// flags returns a flag set for a command, with --config in it.
func flags(command string, std streams) (set *flag.FlagSet, config *string) {
	set = flag.NewFlagSet("idproxy "+command, flag.ContinueOnError)
	set.SetOutput(std.err)
	return set, set.String("config", "", "configuration `file` (default ./idproxy.yaml, then /etc/idproxy/idproxy.yaml)")
}

func parse(set *flag.FlagSet, args []string) error {
	err := set.Parse(args)
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		return fmt.Errorf("%w: %w", errUsage, err)
	}
	return err
}

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

func version(_ context.Context, _ []string, std streams) error {
	release, revision, golang := "(devel)", "", ""
	if info, ok := debug.ReadBuildInfo(); ok {
		golang = info.GoVersion
		if info.Main.Version != "" {
			release = info.Main.Version
		}
		for _, s := range info.Settings {
			if s.Key == "vcs.revision" {
				revision = " " + s.Value
			}
		}
	}
	fmt.Fprintf(std.out, "idproxy %s%s %s\n", release, revision, golang)
	return nil
}
