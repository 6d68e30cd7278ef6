package app

import (
	"strings"

	"idproxy/config"
	"idproxy/proxy"
)

// listenersChange is a change of the listeners that is prepared.
type listenersChange struct {
	*proxy.Change
	p     *Program
	fresh *rereading // what was read for those that are made
	names []string   // of all that are made or gone
	gone  []string
}

// changeListeners makes the listeners that are new or changed, reads their files and opens their
// addresses.
func (p *Program) changeListeners(cfg *config.Config) (*listenersChange, error) {
	c := &listenersChange{p: p, fresh: &rereading{log: p.log, inForce: p.watch.current}}
	var made []proxy.Listener
	for i := range cfg.Listeners {
		is := &cfg.Listeners[i]
		if was := p.cfg.Listener(is.Name); was != nil && was.Like(is) {
			continue
		}
		l, err := c.fresh.listener(is)
		if err != nil {
			c.fresh.end()
			return nil, ofListener(is, err)
		}
		if p.cfg.Admin != nil {
			p.watch.observeListener(&l)
		}
		made, c.names = append(made, l), append(c.names, is.Name)
	}
	for i := range p.cfg.Listeners {
		if name := p.cfg.Listeners[i].Name; cfg.Listener(name) == nil {
			c.gone = append(c.gone, name)
		}
	}
	c.names = append(c.names, c.gone...)
	var err error
	if c.Change, err = p.srv.Prepare(made, c.gone); err != nil {
		return nil, err
	}
	return c, nil
}

// commit puts them in force, with the settings of a configuration. What it returns is closed when the
// sessions of those that are gone have ended.
func (c *listenersChange) commit(cfg *config.Config) <-chan struct{} {
	p := c.p
	p.rereading.take(c.fresh, c.changed)
	p.rereading.logins(cfg)
	gone := c.Commit(p.settings())
	p.watch.reloaded(cfg, c.changed)
	for _, name := range c.gone {
		p.watch.held.DeleteLabelValues(name)
	}
	return gone
}

// changed reports whether a part of the configuration is of a listener that is another one now.
func (c *listenersChange) changed(section string) bool {
	for _, name := range c.names {
		if strings.HasPrefix(section, "listeners."+name+".") {
			return true
		}
	}
	return false
}
