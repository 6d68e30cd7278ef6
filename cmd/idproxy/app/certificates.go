package app

import (
	"context"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"idproxy/cmd/idproxy/tlsconfig"
	"idproxy/config"
	"idproxy/monitor"
)

// When the log says that a certificate ends, and how often from then on.
const (
	certificateSoon   = 14 * 24 * time.Hour
	certificatePeriod = 24 * time.Hour
)

// certificates are those that are in force: a file that was replaced since by one that cannot be
// used, or that nobody reads again, changes nothing.
type certificates struct {
	log *slog.Logger

	mu  sync.Mutex
	all []tlsconfig.Certificate
}

// reloaded reads those of a configuration that are new, or of parts that are changed. One that cannot
// be read is not used either.
func (c *certificates) reloaded(cfg *config.Config, changed func(section string) bool) {
	all, err := tlsconfig.Certificates(cfg)
	if err != nil {
		c.log.Warn("certificates that nobody watches", "error.message", err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for i, one := range all {
		if old := c.named(one.Name); old != nil && !changed(one.Name) {
			all[i] = *old
		}
	}
	c.all = all
}

// renew reads those of sections whose files were read again.
func (c *certificates) renew(cfg *config.Config, readings []tlsconfig.Reading) {
	all, err := tlsconfig.Certificates(cfg)
	if err != nil && len(readings) > 0 {
		c.log.Warn("certificates that nobody watches", "error.message", err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for i, old := range c.all {
		for _, one := range all {
			again := slices.ContainsFunc(readings, func(r tlsconfig.Reading) bool { return strings.HasPrefix(one.Name, r.Section+".") })
			if one.Name == old.Name && again {
				c.all[i] = one
			}
		}
	}
}

// named returns the one of a name; nil: there is none.
func (c *certificates) named(name string) *tlsconfig.Certificate {
	for i := range c.all {
		if c.all[i].Name == name {
			return &c.all[i]
		}
	}
	return nil
}

// remind says of those that end soon that they do.
func (c *certificates) remind() {
	for _, one := range c.state() {
		if time.Until(one.Ends) < certificateSoon {
			c.log.Warn("certificate ends", "certificate", one.Name, "file.path", one.File, "ends", one.Ends)
		}
	}
}

// warn reminds once a day until ctx is done.
func (c *certificates) warn(ctx context.Context) {
	tick := time.NewTicker(certificatePeriod)
	defer tick.Stop()
	for {
		c.remind()
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

func (c *certificates) state() []monitor.Certificate {
	c.mu.Lock()
	defer c.mu.Unlock()
	all := make([]monitor.Certificate, 0, len(c.all))
	for _, one := range c.all {
		all = append(all, monitor.Certificate{Name: one.Name, File: one.File, Ends: one.Ends.UTC()})
	}
	return all
}
