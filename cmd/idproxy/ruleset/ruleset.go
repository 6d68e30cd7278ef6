// Package ruleset makes the rules of a configuration into those that packages proxy and rewriter
// take.
package ruleset

import (
	"idproxy/config"
	"idproxy/rule"
)

// Counts are those of rules, by their names. They stay when a reload brings the same rule again.
type Counts map[string]*rule.Counts

// of returns the counts of a rule; nil where nobody counts.
func (c Counts) of(name string) *rule.Counts {
	if c != nil && c[name] == nil {
		c[name] = &rule.Counts{}
	}
	return c[name]
}

// Sum returns the ids that all rules came to, and the statements that observing ones saw.
func (c Counts) Sum() (ids, observed uint64) {
	for _, counts := range c {
		i, o, _ := counts.Load()
		ids, observed = ids+i, observed+o
	}
	return ids, observed
}

// ByListener returns the rules of each listener, by its name. Listeners with the same
// rules share them. nil counts: nobody asks. eras are those of sources.
func ByListener(cfg *config.Config, counts Counts, eras map[string]uint64) map[string]*rule.List {
	sets, byRules := map[string]*rule.List{}, map[string]*rule.List{}
	for i := range cfg.Listeners {
		name := cfg.Listeners[i].Name
		which := make([]byte, 0, len(cfg.Rules)) // of the rules hold here
		if cfg.Listeners[i].Shard != nil {       // they are its own
			which = append(which, name...)
		}
		for j := range cfg.Rules {
			on := byte('0')
			if cfg.Rules[j].On(name) {
				on = '1'
			}
			which = append(which, on)
		}
		if byRules[string(which)] == nil {
			rules := Of(cfg, name)
			for i := range rules {
				rules[i].Era = eras[rules[i].Source]
				rules[i].Counts = counts.of(rules[i].String())
			}
			byRules[string(which)] = rule.NewList(rules)
		}
		sets[name] = byRules[string(which)]
	}
	return sets
}

// On returns the rules that hold on a listener, in the order of rulesOf.
func On(cfg *config.Config, listener string) (rules []*config.Rule) {
	for i := range cfg.Rules {
		if r := &cfg.Rules[i]; r.On(listener) {
			rules = append(rules, r)
		}
	}
	return rules
}

// Of returns the rules that hold on a listener, as the proxy takes them.
func Of(cfg *config.Config, listener string) []rule.Rule {
	var rules []rule.Rule
	kinds := map[string]rule.IDKind{}
	for i := range cfg.Sources {
		kinds[cfg.Sources[i].Name] = Kind(&cfg.Sources[i])
	}
	for _, r := range On(cfg, listener) {
		one := rule.Rule{
			Schema: r.Schema, Table: r.Table, Column: r.Column, Source: r.Source, IDs: kinds[r.Source],
			Packet:  r.LastInsertID == config.LastIDPacket,
			Forward: r.Unsupported == config.UnsupportedForward,
			Observe: r.Mode.Word == config.ModeObserve,
		}
		if s := cfg.Source(r.Source); s != nil && s.Segment != nil {
			one.Last = s.Segment.Last
		}
		if r.Mode.Word == config.ModeUnknown {
			one.Source = UnknownSource(r.Mode.Switch)
		}
		switch r.Explicit {
		case config.ExplicitReject:
			one.Explicit = rule.Reject
		case config.ExplicitAdvance:
			one.Explicit = rule.Advance
		}
		if one.Gene = Gene(r); one.Gene != nil {
			one.Gene.Shard = shard(cfg, listener)
		}
		rules = append(rules, one)
	}
	return rules
}

// UnknownSource is where rules get ids from while nobody knows what their switch says. No source of a
// configuration has such a name.
func UnknownSource(name string) string { return "(switch " + name + ")" }

// Kind returns what the ids of a source are.
func Kind(s *config.Source) rule.IDKind {
	switch {
	case s != nil && s.UUIDv7 != nil:
		return rule.UUID
	case s != nil && s.ObjectID != nil:
		return rule.ObjectID
	}
	return rule.Number
}

// Gene returns the gene of a rule, nil when it has none.
func Gene(r *config.Rule) *rule.Gene {
	if r.Gene == nil {
		return nil
	}
	return &rule.Gene{Column: r.Gene.Column, Bits: int(r.Gene.Bits), CRC32: r.Gene.By == config.GeneCRC32}
}

// shard returns the shard that a listener is for; nil: any.
func shard(cfg *config.Config, listener string) *rule.Shard {
	for i := range cfg.Listeners {
		if l := &cfg.Listeners[i]; l.Name == listener && l.Shard != nil {
			return &rule.Shard{Listener: listener, Bits: int(l.Shard.Bits), Value: uint16(l.Shard.Value)}
		}
	}
	return nil
}
