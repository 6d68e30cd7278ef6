package app

import (
	"fmt"
	"net/netip"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/coreos/go-systemd/v22/daemon"
	"golang.org/x/sys/unix"

	"idproxy/cmd/idproxy/ruleset"
	"idproxy/config"
	"idproxy/proxy"
	"idproxy/proxy/dial"
	"idproxy/proxy/limit"
)

// reloadOnHangup reloads the file at every SIGHUP until the returned function
// is called.
func (p *Program) reloadOnHangup(file string) (stop func()) {
	hangup := make(chan os.Signal, 1)
	signal.Notify(hangup, syscall.SIGHUP)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for range hangup {
			p.notify(reloading())
			err := p.Reload(file)
			p.watch.countReload(err)
			if err != nil {
				p.log.Error("configuration not reloaded, the old one stays in force", "error.message", err)
			} else {
				p.log.Info("configuration reloaded", "file.path", file)
			}
			p.rereading.now()
			p.notify(daemon.SdNotifyReady)
		}
	}()
	return func() {
		signal.Stop(hangup)
		close(hangup)
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

// Reload puts the file in force as far as that needs no restart. It changes
// everything or nothing.
func (p *Program) Reload(file string) error {
	cfg, err := config.Load(file)
	if err != nil {
		return err
	}
	if changed := config.Diff(p.cfg, cfg); len(changed) > 0 {
		return fmt.Errorf("a change of %s needs a restart", strings.Join(changed, ", "))
	}
	if err := p.sources.Reload(cfg); err != nil {
		return err
	}
	p.cfg = cfg
	p.rereading.passwords(cfg)
	setLevel(p.level, cfg.Log)
	p.srv.Set(p.settings())
	p.ids.again()
	p.watch.reloaded(cfg)
	return nil
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
	return &proxy.Settings{
		Rules:           ruleset.ByListener(p.cfg, p.counts),
		Sources:         p.sources.Named(),
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
