package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"idproxy/cmd/idproxy/admin"
)

// Exit statuses.
const (
	statusFine    = 0
	statusFinding = 1
	statusUsage   = 2
)

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
var errUsage = admin.ErrUsage

// errFindings says that what was to be reported has been printed.
var errFindings = errors.New("findings")

func run(ctx context.Context, args []string, std streams) int {
	root := commandLine(std)
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	switch {
	case err == nil:
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
