package migrate

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/goccy/go-yaml"

	"idproxy/cmd/idproxy/switches"
	"idproxy/monitor"
)

// Proxy is how a proxy stands to the switch.
type Proxy struct {
	Address string    `json:"address"`
	State   string    `json:"state"`   // of the switch, that is in force there
	Version uint64    `json:"version"` // likewise
	Since   time.Time `json:"since"`
	Problem string    `json:"problem,omitempty"` // why it is not known, or why it gives no ids

	said     monitor.State
	deaf     bool // the problem is that its store does not say how the switch stands
	refusals []monitor.Refusal
}

const (
	askProxy   = 5 * time.Second
	turnTime   = 15 * time.Second // all proxies have to hear a turn
	turnPeriod = 50 * time.Millisecond
)

// ask asks all proxies of the plan at once. whole: for their rules, too, and for what they refused.
func (m *Migration) ask(ctx context.Context, whole bool) []*Proxy {
	ctx, cancel := context.WithTimeout(ctx, askProxy)
	defer cancel()
	all := make([]*Proxy, len(m.plan.Proxies))
	var asking sync.WaitGroup
	for i, address := range m.plan.Proxies {
		all[i] = &Proxy{Address: cmp.Or(address, "the configuration's admin listener")}
		asking.Go(func() {
			if err := all[i].ask(ctx, m, address, whole); err != nil {
				all[i].Problem = err.Error()
			}
		})
	}
	asking.Wait()
	return all
}

func (p *Proxy) ask(ctx context.Context, m *Migration, address string, whole bool) error {
	client, err := m.Dial(address)
	if err != nil {
		return err
	}
	if p.said, err = client.State(ctx); err != nil {
		return err
	}
	at := slices.IndexFunc(p.said.Switches, func(s monitor.Switch) bool { return s.Name == m.plan.Switch })
	if at < 0 {
		return fmt.Errorf("its configuration (%s) has no switch %s: give it the rules of %s, and reload it", p.said.Config.File, m.plan.Switch, m.cfg.Path)
	}
	s := &p.said.Switches[at]
	p.State, p.Version, p.Since = s.State, s.Version, s.Since
	if whole {
		if err := p.askWhole(ctx, m, client); err != nil {
			return err
		}
	}
	if p.deaf = s.Problem != ""; p.deaf {
		return errors.New(s.Problem)
	}
	for i := range p.said.Sources {
		if source := &p.said.Sources[i]; source.Problem != "" {
			return fmt.Errorf("source %s: %s", source.Name, source.Problem)
		}
	}
	if p.said.Draining {
		return errors.New("it drains")
	}
	return nil
}

// askWhole asks for its rules, which must be those of the plan, and for what it refused.
func (p *Proxy) askWhole(ctx context.Context, m *Migration, client *monitor.Client) error {
	text, err := client.ConfigText(ctx)
	if err != nil {
		return err
	}
	if err := m.agrees(text); err != nil {
		return fmt.Errorf("its configuration (%s): %w", p.said.Config.File, err)
	}
	p.refusals, err = client.Refusals(ctx)
	return err
}

// concerned is what of a configuration must be the same in all proxies.
type concerned struct {
	Sources map[string]any   `yaml:"sources"`
	Rules   []map[string]any `yaml:"rules"`
}

// readConcerned reads the rules of a switch, and their sources.
func (m *Migration) readConcerned(text []byte) (c concerned, err error) {
	if err := yaml.Unmarshal(text, &c); err != nil {
		return c, err
	}
	c.Rules = slices.DeleteFunc(c.Rules, func(r map[string]any) bool {
		mode, _ := r["mode"].(map[string]any)
		return mode["switch"] != m.plan.Switch
	})
	maps.DeleteFunc(c.Sources, func(name string, _ any) bool {
		return !slices.ContainsFunc(c.Rules, func(r map[string]any) bool { return r["source"] == name })
	})
	return c, nil
}

// agrees looks whether a proxy has the rules and sources of the plan's configuration.
func (m *Migration) agrees(text []byte) error {
	own, err := m.cfg.YAML()
	if err != nil {
		return err
	}
	want, err := m.readConcerned(own)
	if err != nil {
		return err
	}
	got, err := m.readConcerned(text)
	if err != nil {
		return err
	}
	if !reflect.DeepEqual(got, want) {
		return fmt.Errorf("its rules with switch %s, or their sources, are others than those of %s: give it the same, and reload it", m.plan.Switch, m.cfg.Path)
	}
	return nil
}

// stand reports as findings which proxies do not have the switch in a state, by some turn at least.
func stand(all []*Proxy, state string, version uint64) (findings []Finding) {
	for _, p := range all {
		switch {
		case p.Problem != "":
			findings = append(findings, finding(LevelError, "proxy %s: %s", p.Address, p.Problem))
		case p.State != state:
			findings = append(findings, finding(LevelError, "proxy %s has the switch at %s, not at %s", p.Address, p.State, state))
		case p.Version < version:
			findings = append(findings, finding(LevelError, "proxy %s has the switch at version %d, and has not heard of version %d", p.Address, p.Version, version))
		}
	}
	return findings
}

// set turns the switch, above every version that a proxy has heard.
func (m *Migration) set(ctx context.Context, state string) (switches.Switch, error) {
	s, err := switches.Set(ctx, m.notes, m.plan.Switch, state, operator(), heard(m.ask(ctx, false)))
	if err != nil {
		return s, fmt.Errorf("store %s: %w", m.plan.Store, err)
	}
	return s, nil
}

// heard is the greatest version that a proxy has heard.
func heard(all []*Proxy) (version uint64) {
	for _, p := range all {
		version = max(version, p.Version)
	}
	return version
}

// enforces reports whether a proxy gives ids.
func enforces(all []*Proxy) bool {
	return slices.ContainsFunc(all, func(p *Proxy) bool { return p.State == switches.Enforce })
}

// at reports whether the store says that the switch is in a state, and no proxy has heard of a later turn:
// then the store went back.
func (m *Migration) at(ctx context.Context, state string) (bool, switches.Switch, error) {
	s, err := switches.Read(ctx, m.notes, m.plan.Switch)
	if err != nil {
		return false, s, fmt.Errorf("store %s: %w", m.plan.Store, err)
	}
	return s.State == state && s.Version > 0 && s.Version >= heard(m.ask(ctx, false)), s, nil
}

// turn turns the switch, and waits until all proxies have it in force. The findings name those that have
// not. all is nil where it was not turned.
func (m *Migration) turn(ctx context.Context, state string) (all []*Proxy, findings []Finding, err error) {
	turned, err := m.set(ctx, state)
	if err != nil {
		return nil, nil, err
	}
	return m.await(ctx, state, turned.Version)
}

// await waits until all proxies have the switch in a state, by some turn at least.
func (m *Migration) await(ctx context.Context, state string, version uint64) (all []*Proxy, findings []Finding, err error) {
	for began := time.Now(); ; {
		all = m.ask(ctx, false)
		if findings = stand(all, state, version); len(findings) == 0 || time.Since(began) > turnTime {
			return all, findings, nil
		}
		select {
		case <-ctx.Done():
			return all, findings, context.Cause(ctx)
		case <-time.After(turnPeriod):
		}
	}
}

// apart is how far apart proxies turned, by their clocks.
func apart(all []*Proxy) time.Duration {
	first, last := all[0].Since, all[0].Since
	for _, p := range all {
		if p.Since.Before(first) {
			first = p.Since
		}
		if p.Since.After(last) {
			last = p.Since
		}
	}
	return last.Sub(first).Round(time.Millisecond)
}

// shapes are the statements that proxies have seen and that rules with the switch would refuse.
func (m *Migration) shapes(all []*Proxy) (findings []Finding) {
	seen := map[string]bool{}
	for _, p := range all {
		for _, r := range p.refusals {
			text := r.Rule + ": " + r.Statement + ": " + strings.TrimPrefix(r.Text, wouldRefuse)
			if r.Reason == "observed" && strings.HasPrefix(r.Text, wouldRefuse) && m.turns(r.Rule) && !seen[text] {
				seen[text] = true
				findings = append(findings, finding(LevelForce, "would be refused: %s (last of user %s, at %s)", text, r.User, r.Last.UTC().Format(time.RFC3339)))
			}
		}
	}
	return findings
}

// How what an observing rule says begins.
const (
	wouldRefuse  = "would refuse: "
	wouldForward = "would forward without an id: "
)

// turns reports whether a rule has the switch.
func (m *Migration) turns(rule string) bool {
	for i := range m.cfg.Rules {
		if r := &m.cfg.Rules[i]; r.String() == rule && r.Mode.Switch == m.plan.Switch {
			return true
		}
	}
	return false
}
