package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	// Signals are caught to the end: a second one must not end a process that is about to say how it ended.
	ctx, _ := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	os.Exit(run(ctx, os.Args[1:], streams{os.Stdin, os.Stdout, os.Stderr}))
}

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
