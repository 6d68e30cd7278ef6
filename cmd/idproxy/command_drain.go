package main

import (
	"context"
	"errors"
	"time"

	"github.com/spf13/cobra"

	"idproxy/monitor"
)

func drainCommand(at *configFile) *cobra.Command {
	var address string
	waiting := false
	c := &cobra.Command{
		Use: "drain", Short: "Have a running idproxy let its sessions go, without ending it", Example: "  idproxy drain --wait && systemctl restart idproxy",
		Long: `Have a running idproxy let its sessions go, as at SIGTERM, without ending it: /readyz says that it is not ready; after drain.delay no new
sessions are taken and those that are there end between two transactions, over drain.spread; what is left after shutdown_timeout is cut.
idproxy resume takes it back. It asks the admin listener as idproxy status does, with its token or over its unix socket.`,
		Args: usageOf(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			client, err := adminClient(at, address)
			if err != nil {
				return err
			}
			if err := client.Drain(cmd.Context()); err != nil || !waiting {
				return err
			}
			return waitUntilDrained(cmd.Context(), client)
		},
	}
	adminFlag(c.Flags(), &address)
	c.Flags().BoolVar(&waiting, "wait", false, "wait until no session is left; Ctrl-C ends the wait and not the drain")
	return c
}

var errTakenBack = errors.New("the drain was taken back")

// drainPeriod is how often a drain is looked at that somebody waits for.
const drainPeriod = 200 * time.Millisecond

func waitUntilDrained(ctx context.Context, client *monitor.Client) error {
	for {
		s, err := client.State(ctx)
		if err != nil || s.Phase == monitor.Drained {
			return err
		}
		if !s.Draining {
			return errTakenBack
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(drainPeriod):
		}
	}
}

func resumeCommand(at *configFile) *cobra.Command {
	var address string
	c := &cobra.Command{
		Use: "resume", Short: "Take idproxy drain back", Example: "  idproxy resume",
		Long: "Take idproxy drain back: sessions that have not ended stay, and new ones are taken again. It asks the admin listener as idproxy drain does.",
		Args: usageOf(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			client, err := adminClient(at, address)
			if err != nil {
				return err
			}
			return client.Resume(cmd.Context())
		},
	}
	adminFlag(c.Flags(), &address)
	return c
}
