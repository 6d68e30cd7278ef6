package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/coreos/go-systemd/v22/daemon"

	"idproxy/config"
	"idproxy/proxy"
	"idproxy/rewriter/grammar"
)

// serve runs the proxy until ctx is done.
func serve(ctx context.Context, file string, std streams) error {
	cfg, err := config.Load(file)
	if err != nil {
		return err
	}
	level := &slog.LevelVar{}
	p := &program{cfg: cfg, level: level, log: newLogger(std.err, cfg.Log, level)}
	return p.serve(ctx, file)
}

// newLogger writes to w what the configuration asks for. The level can change
// later.
func newLogger(w io.Writer, c config.Log, level *slog.LevelVar) *slog.Logger {
	setLevel(level, c)
	options := &slog.HandlerOptions{Level: level}
	if c.Format == "json" {
		options.ReplaceAttr = inMilliseconds
		return slog.New(slog.NewJSONHandler(w, options))
	}
	return slog.New(slog.NewTextHandler(w, options))
}

// inMilliseconds writes durations as numbers of milliseconds, with the unit in the name;
// slog's own are nanoseconds.
func inMilliseconds(_ []string, a slog.Attr) slog.Attr {
	if a.Value.Kind() != slog.KindDuration {
		return a
	}
	return slog.Float64(a.Key+"_ms", float64(a.Value.Duration())/float64(time.Millisecond))
}

func setLevel(level *slog.LevelVar, c config.Log) {
	var l slog.Level
	if l.UnmarshalText([]byte(c.Level)) == nil { // config has checked the word
		level.Set(l)
	}
}

// program is a running idproxy.
type program struct {
	cfg     *config.Config
	level   *slog.LevelVar
	log     *slog.Logger
	sources *sources
	srv     *proxy.Server
	ids     *idServer // nil: none
}

func (p *program) serve(ctx context.Context, file string) (err error) {
	p.sources, err = openSources(p.cfg, p.log)
	if err != nil {
		return err
	}
	defer func() {
		if cerr := p.sources.close(); err == nil {
			err = cerr
		}
	}()
	p.sources.warnOfCrashes(ctx)
	if text := descriptors(p.cfg); text != "" {
		p.log.Warn("too few open files", "cause", text)
	}
	listeners, err := proxyConfig(p.cfg, p.log)
	if err != nil {
		return err
	}
	second := grammar.New(knownShapes)
	listeners.SecondReader = second
	p.srv = proxy.New(listeners, p.settings())
	if err := p.srv.Listen(); err != nil {
		return err
	}
	if p.ids, err = p.serveIDs(); err != nil {
		return err
	}
	defer func() {
		if cerr := p.ids.close(); err == nil {
			err = cerr
		}
	}()
	p.notify(daemon.SdNotifyReady)
	stopReloads := p.reloadOnHangup(file)
	defer stopReloads()
	err = p.srv.Serve(ctx)
	p.notify(daemon.SdNotifyStopping)
	p.log.Info("stopped", "filled", p.srv.Stats.Filled.Load(), "ids", p.srv.Stats.IDs.Load(), "refused", p.srv.Stats.Refused.Load(),
		"unseen", p.srv.Stats.Unseen.Load(),
		slog.Group("shapes", "agreed", second.Agreed.Load(), "unread", second.Unread.Load(), "differ", second.Differs.Load()))
	return err
}

// knownShapes is how many shapes of statements the second reader remembers: eight bytes each.
const knownShapes = 1 << 14

// notify tells systemd, when it started us.
func (p *program) notify(state string) {
	if _, err := daemon.SdNotify(false, state); err != nil {
		p.log.Warn("systemd notification", "error", err)
	}
}

// reloadOnHangup reloads the file at every SIGHUP until the returned function
// is called.
func (p *program) reloadOnHangup(file string) (stop func()) {
	hangup := make(chan os.Signal, 1)
	signal.Notify(hangup, syscall.SIGHUP)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for range hangup {
			p.notify(daemon.SdNotifyReloading)
			if err := p.reload(file); err != nil {
				p.log.Error("configuration not reloaded, the old one stays in force", "error", err)
			} else {
				p.log.Info("configuration reloaded", "file", file)
			}
			p.notify(daemon.SdNotifyReady)
		}
	}()
	return func() {
		signal.Stop(hangup)
		close(hangup)
		<-done
	}
}

// reload puts the file in force as far as that needs no restart. It changes
// everything or nothing.
func (p *program) reload(file string) error {
	cfg, err := config.Load(file)
	if err != nil {
		return err
	}
	if changed := config.Diff(p.cfg, cfg); len(changed) > 0 {
		return fmt.Errorf("a change of %s needs a restart", strings.Join(changed, ", "))
	}
	if err := p.sources.open(cfg); err != nil {
		return err
	}
	p.cfg = cfg
	p.sources.begin.Set(cfg)
	setLevel(p.level, cfg.Log)
	p.srv.Set(p.settings())
	p.ids.again()
	return nil
}
