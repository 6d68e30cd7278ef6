// Package app runs idproxy: it opens the sources of a configuration, listens, reads the
// configuration again at SIGHUP, and ends all in order.
package app

import (
	"context"
	"io"
	"log/slog"
	"sync"
	"syscall"

	"github.com/coreos/go-systemd/v22/daemon"

	"idproxy/cmd/idproxy/handover"
	"idproxy/cmd/idproxy/keys"
	"idproxy/cmd/idproxy/ruleset"
	"idproxy/cmd/idproxy/sources"
	"idproxy/cmd/idproxy/tlsconfig"
	"idproxy/config"
	"idproxy/proxy"
	"idproxy/rewriter/grammar"
)

// Serve runs the proxy that a file configures until ctx is done, or a successor serves in its place.
// Its log goes to w.
func Serve(ctx context.Context, file string, w io.Writer) error {
	start, err := handover.Begin()
	if err != nil {
		return err
	}
	err = serve(ctx, file, w, start)
	if err != nil {
		start.Failed(err)
	}
	return err
}

func serve(ctx context.Context, file string, w io.Writer, start *handover.Start) error {
	cfg, err := config.Load(file)
	if err != nil {
		return err
	}
	p := New(cfg, w)
	p.succession.start = start
	return p.Serve(ctx)
}

// Program is a running idproxy: the sources of ids, the sessions that fill INSERTs from
// them, and the server that hands ids to other programs.
type Program struct {
	cfg     *config.Config
	level   *slog.LevelVar
	log     *slog.Logger
	tracer  *slog.Logger // whatever the level
	sources *sources.Sources
	srv     *proxy.Server
	ids     *idServer // nil: none
	counts  ruleset.Counts
	watch   *watch
	modes   *modeSwitches
	left    *leaving   // by the newest reload; nil: there was none
	reloads sync.Mutex // held while one is under way
	succession

	rereading rereading
}

// New returns a program that does not run yet. Its log goes to w.
func New(cfg *config.Config, w io.Writer) *Program {
	p := &Program{cfg: cfg, level: &slog.LevelVar{}, counts: ruleset.Counts{}}
	p.succession = succession{p: p, start: &handover.Start{Sockets: &handover.Sockets{}}, succeeded: make(chan struct{})}
	p.watch = newWatch(p)
	p.modes = &modeSwitches{turn: p.turn}
	setLevel(p.level, cfg.Log)
	all := newHandler(w, cfg)
	p.tracer = slog.New(all)
	p.log = slog.New(p.watch.events.Handler(leveled{all, p.level}))
	p.rereading.more = make(chan struct{}, 1)
	p.rereading.log, p.rereading.inForce = p.log, p.watch.current
	p.rereading.renewed = func(r []tlsconfig.Reading) { p.watch.certificates.renew(p.watch.inForce.Load().cfg, r) }
	p.watch.stores.log, p.watch.certificates.log, p.watch.refusing.log = p.log, p.log, p.log
	p.modes.log = p.log
	return p
}

// Stats are what the program counted of statements, once it listens.
func (p *Program) Stats() *proxy.Stats { return &p.srv.Stats }

// Counts are what the rules came to, those among them that a reload took out.
func (p *Program) Counts() ruleset.Counts { return p.watch.inForce.Load().counts }

// Serve runs the program until ctx is done. SIGHUP reads its file again, SIGUSR2 has a successor serve
// in its place.
func (p *Program) Serve(ctx context.Context) (err error) {
	defer p.gone()
	hangup, upgrade := caught(syscall.SIGHUP), caught(syscall.SIGUSR2)
	if err := p.closed(); err != nil {
		return err
	}
	listen := p.start.Sockets.Listen
	learned, err := p.modes.learn(ctx, p.cfg)
	if err != nil {
		p.log.Warn("a switch is not known, INSERTs into the tables of its rules are refused until it is", "error.message", err)
	}
	p.modes.adopt(learned)
	p.cfg = p.cfg.Turned(p.modes.modes(learned))
	p.sources, err = sources.Open(p.cfg, sources.Options{Logger: p.log, Fetched: p.watch.fetched, Listen: listen, Shared: p.start.Succeeds()})
	if err != nil {
		return err
	}
	defer joined(&err, p.sources.Close)
	if err := p.inherit(); err != nil {
		return err
	}
	defer func() { p.left.finish() }()
	p.sources.WarnOfCrashes(ctx)
	if text := Descriptors(p.cfg); text != "" {
		p.log.Warn("too few open files", "reason", text)
	}
	defer p.rereading.end()
	listeners, err := p.rereading.proxyConfig(p.cfg, p.log)
	if err != nil {
		return err
	}
	second := grammar.New(knownShapes)
	listeners.SecondReader, listeners.Tracer, listeners.Open = second, p.tracer, listen
	listeners.OnRefused = func(r proxy.RefusedStatement) { p.watch.noteRefusal(&r) }
	defer p.watch.refusing.close()
	if p.cfg.Admin != nil {
		p.watch.observe(&listeners)
	}
	p.srv = proxy.New(listeners, p.settings())
	p.watch.reloaded(p.cfg, func(string) bool { return true })
	cfg := p.cfg // a switch that turns replaces p.cfg from now on
	p.modes.follow(cfg, p.sources)
	defer p.modes.stop()
	stopWatch, err := p.watch.serve(ctx, cfg.Admin, listen)
	if err != nil {
		return err
	}
	defer joined(&err, stopWatch)
	if err := p.srv.Listen(); err != nil {
		return err
	}
	if p.ids, err = serveIDs(cfg.IDs, keys.New(p.log, p.sources), p.log, &p.rereading.files, p.watch.api, p.sources.Leader, listen, p.awaitSources); err != nil {
		return err
	}
	stopIDs := sync.OnceValue(p.ids.close)
	defer joined(&err, stopIDs)
	p.sources.ServeOrder(p.ids.announced())
	defer at(hangup, func() { _, _ = p.Reload() })() // the log has what comes of it
	defer at(upgrade, func() { _ = p.Upgrade() })()
	p.comeUp(ctx)
	ctx, end := context.WithCancel(ctx)
	defer end()
	go p.handOver(ctx, func() {
		end()
		_ = stopWatch() // what they say is said again at the end
		_ = stopIDs()
	})
	var watching sync.WaitGroup
	defer watching.Wait()
	watched, done := context.WithCancel(ctx)
	defer done()
	watching.Go(func() { p.rereading.onChange(watched, usual) })
	err = p.srv.Serve(ctx)
	ids, _ := p.Counts().Sum()
	p.log.Info("stopped", "filled", p.srv.Stats.Filled.Load(), "ids", ids, "refused", p.srv.Stats.Refused.Load(),
		"unseen", p.srv.Stats.Unseen.Load(),
		"shapes.agreed", second.Agreed.Load(), "shapes.unread", second.Unread.Load(), "shapes.differ", second.Differs.Load())
	return err
}

// joined adds the error of what ends something to that of a function that is left.
func joined(err *error, end func() error) {
	if ended := end(); *err == nil {
		*err = ended
	}
}

// knownShapes is how many shapes of statements the second reader remembers: eight bytes each.
const knownShapes = 1 << 14

// notify tells systemd, when it started us.
func (p *Program) notify(state string) {
	if _, err := daemon.SdNotify(false, state); err != nil {
		p.log.Warn("systemd notification", "error.message", err)
	}
}
