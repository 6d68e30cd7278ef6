// Package inventory says which servers are behind the listeners of a configuration, and lists what these show of the tables that rules
// concern.
package inventory

import (
	"slices"

	"idproxy/cmd/idproxy/ruleset"
	"idproxy/config"
	"idproxy/rule"
)

// Shard is a server, or several that stand in for one another, by the listeners that lead there.
type Shard struct{ Listeners []*config.Listener }

// Shards returns the shards of a configuration, in the order of its listeners. Those of one key lead to one shard. key gets the rules of a
// listener, too, and ok is false where the listener is left out.
func Shards[K comparable](cfg *config.Config, key func(l *config.Listener, rules []*config.Rule) (k K, ok bool)) (all []*Shard) {
	byKey := map[K]*Shard{}
	for i := range cfg.Listeners {
		l := &cfg.Listeners[i]
		k, ok := key(l, ruleset.On(cfg, l.Name))
		if !ok {
			continue
		}
		if byKey[k] == nil {
			byKey[k] = &Shard{}
			all = append(all, byKey[k])
		}
		byKey[k].Listeners = append(byKey[k].Listeners, l)
	}
	return all
}

// Set is the rules that hold on a listener.
type Set struct {
	*rule.List
	Rules []*config.Rule
}

// Sets returns the rules of the listeners, each set once.
func (s *Shard) Sets(cfg *config.Config) (sets []Set) {
	lists := ruleset.ByListener(cfg, nil, nil)
	for _, l := range s.Listeners {
		if !slices.ContainsFunc(sets, func(of Set) bool { return of.List == lists[l.Name] }) {
			sets = append(sets, Set{lists[l.Name], ruleset.On(cfg, l.Name)})
		}
	}
	return sets
}
