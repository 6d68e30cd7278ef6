package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/netip"
	"os"
	"os/signal"
	"strings"
	"sync"
	"time"

	"github.com/coreos/go-systemd/v22/daemon"
	"golang.org/x/sys/unix"

	"idproxy/cmd/idproxy/ruleset"
	"idproxy/cmd/idproxy/sources"
	"idproxy/config"
	"idproxy/proxy"
	"idproxy/proxy/dial"
	"idproxy/proxy/limit"
)

// caught is where a signal arrives until the process ends. A signal that is not caught ends the process,
// while it comes up and while it gives back what it holds, too.
func caught(sig os.Signal) <-chan os.Signal {
	c := make(chan os.Signal, 1)
	signal.Notify(c, sig)
	return c
}

// at calls do at every signal until the returned function is called.
func at(signals <-chan os.Signal, do func()) (stop func()) {
	end, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for {
			select {
			case <-signals:
				do()
			case <-end:
				return
			}
		}
	}()
	return func() {
		close(end)
		<-done
	}
}

// reloading is what systemd is told when a reload begins: the moment shows it that what comes is about
// the signal that it sent.
func reloading() string {
	var now unix.Timespec
	if unix.ClockGettime(unix.CLOCK_MONOTONIC, &now) != nil {
		return daemon.SdNotifyReloading
	}
	return fmt.Sprintf("%s\nMONOTONIC_USEC=%d", daemon.SdNotifyReloading, now.Nano()/1000)
}

// Reload puts the file in force, as it is now: everything or nothing. It says what has changed, and
// reads certificates again whatever came of it.
func (p *Program) Reload() ([]config.Change, error) {
	p.reloads.Lock()
	defer p.reloads.Unlock()
	p.notify(reloading())
	defer p.notify(daemon.SdNotifyReady)
	changes, err := p.reload()
	p.watch.countReload(err)
	if err != nil {
		p.log.Error("configuration not reloaded, the old one stays in force", "error.message", err)
	} else {
		p.log.Info("configuration reloaded", "file.path", p.watch.current().Path, "changes", texts(changes))
	}
	p.rereading.now()
	return changes, err
}

func texts(changes []config.Change) []string {
	all := []string{}
	for _, c := range changes {
		all = append(all, c.String())
	}
	return all
}

// reload prepares whatever may fail: listeners with their files and sockets, then stores and sources.
// Behind that nothing can, and settings and listeners change in one moment.
func (p *Program) reload() ([]config.Change, error) {
	end, ok := p.change()
	if !ok {
		return nil, errors.New("an upgrade is under way: try again when it is over")
	}
	defer end()
	if p.next != nil {
		return nil, fmt.Errorf("process %d serves in place of this one: ask that", p.next.PID)
	}
	cfg, changes, err := p.changed()
	if err != nil {
		return nil, err
	}
	learned, err := p.modes.learn(context.Background(), cfg)
	if err != nil {
		return nil, err
	}
	cfg = cfg.Turned(p.modes.modes(learned))
	listeners, err := p.changeListeners(cfg)
	if err != nil {
		return nil, err
	}
	if err := p.left.end(); err != nil {
		p.log.Warn("what an earlier reload took out of force did not end well", "error.message", err)
	}
	left, err := p.sources.Reload(context.Background(), cfg)
	if err != nil {
		listeners.Abort()
		p.srv.Set(p.settings()) // sources that were closed have been made anew
		return nil, err
	}
	if err := p.ids.leave(left.Stores); err != nil {
		p.log.Warn("series of other programs did not give their ids back", "error.message", err)
	}
	p.cfg = cfg
	p.modes.adopt(learned)
	p.left = &leaving{Left: left}
	gone := listeners.commit(cfg)
	setLevel(p.level, cfg.Log)
	p.ids.again()
	p.modes.follow(cfg, p.sources)
	p.left.wait(gone, p.log)
	return changes, nil
}

// changed reads the file as it is now, and says what of it a reload would change.
func (p *Program) changed() (*config.Config, []config.Change, error) {
	cfg, err := config.Load(p.cfg.Path)
	if err != nil {
		return nil, nil, err
	}
	changes := config.Diff(p.cfg, cfg)
	if some := config.NeedRestart(p.cfg, cfg, changes); len(some) > 0 {
		return nil, nil, fmt.Errorf("a change of %s needs a restart", strings.Join(texts(some), ", "))
	}
	return cfg, changes, nil
}

// Preview says what Reload would change, and what would become of series. It changes nothing.
func (p *Program) Preview() ([]string, error) {
	p.reloads.Lock()
	defer p.reloads.Unlock()
	cfg, changes, err := p.changed()
	if err != nil {
		return nil, err
	}
	series, err := p.sources.Preview(context.Background(), cfg)
	return append(texts(changes), series...), err
}

// leaving is what a reload took out of force, until nobody uses it any more.
type leaving struct {
	*sources.Left
	once sync.Once
	err  error
	all  sync.WaitGroup
}

// end ends it now; nil is nothing.
func (l *leaving) end() error {
	if l == nil {
		return nil
	}
	l.once.Do(func() { l.err = l.Close() })
	return l.err
}

// wait ends it once the sessions of listeners that went are gone.
func (l *leaving) wait(gone <-chan struct{}, log *slog.Logger) {
	l.all.Go(func() {
		<-gone
		if err := l.end(); err != nil {
			log.Warn("what a reload took out of force did not end well", "error.message", err)
		}
	})
}

// finish waits for that; nil is nothing.
func (l *leaving) finish() {
	if l != nil {
		l.all.Wait()
	}
}

// traced returns which sessions a configuration has traced; nil: none.
func traced(c *config.Trace) *proxy.Trace {
	if c == nil {
		return nil
	}
	prefix, _ := c.Prefix() // config has checked it
	return &proxy.Trace{User: c.User, Address: prefix}
}

// connectTimes returns how long a server has to accept, by the name of its listener.
func connectTimes(cfg *config.Config) map[string]time.Duration {
	times := map[string]time.Duration{}
	for i := range cfg.Listeners {
		times[cfg.Listeners[i].Name] = cfg.ConnectTimeout(&cfg.Listeners[i])
	}
	return times
}

// bounds returns what each listener's limits are, by its name.
func bounds(cfg *config.Config) map[string]*limit.Bounds {
	all := map[string]*limit.Bounds{}
	for i := range cfg.Listeners {
		l := &cfg.Listeners[i]
		c := cfg.Bounds(l)
		b := &limit.Bounds{
			Sessions: int(c.Sessions), PerUser: int(c.SessionsPerUser), IPv4: 32, IPv6: 128,
			Idle: time.Duration(c.IdleTimeout), Transaction: time.Duration(c.TransactionTimeout),
		}
		if n := c.SessionsPerNetwork; n != nil {
			b.PerNetwork, b.IPv4, b.IPv6 = int(n.Limit), int(n.IPv4), int(n.IPv6)
		}
		for _, network := range l.Allow {
			b.Allow = append(b.Allow, netip.MustParsePrefix(network)) // config has checked it
		}
		all[l.Name] = b
	}
	return all
}

// settings returns what of the configuration may change while sessions run.
func (p *Program) settings() *proxy.Settings {
	named, eras := p.sources.Named(), p.sources.Eras()
	if p.left != nil {
		maps.Copy(named, p.left.Sources())
	}
	for name, source := range p.modes.unknown() {
		named[name] = source
	}
	return &proxy.Settings{
		Rules:           ruleset.ByListener(p.cfg, p.counts, eras),
		Sources:         named,
		Eras:            eras,
		IDWait:          p.cfg.Limits.IDWait,
		Sessions:        int(p.cfg.Limits.Sessions),
		Handshake:       p.cfg.Limits.Handshake,
		Connect:         connectTimes(p.cfg),
		TCP:             dial.TCP{Keepalive: time.Duration(p.cfg.TCP.Keepalive), UserTimeout: time.Duration(p.cfg.TCP.UserTimeout)},
		Statement:       int(p.cfg.Limits.Statement),
		Held:            int(p.cfg.Limits.Held),
		Logins:          int(p.cfg.Limits.Logins),
		Bounds:          bounds(p.cfg),
		DrainDelay:      p.cfg.Drain.Delay,
		DrainSpread:     p.cfg.Drain.Spread,
		ShutdownTimeout: p.cfg.ShutdownTimeout,
		Trace:           traced(p.cfg.Log.Trace),
	}
}
