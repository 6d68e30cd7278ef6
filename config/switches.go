package config

import "slices"

// Switches returns the names of the switches that rules have, each once, in file order.
func (c *Config) Switches() (names []string) {
	for i := range c.Rules {
		if name := c.Rules[i].Mode.Switch; name != "" && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// SwitchStore returns the store that keeps a switch: that of the sources of its rules. nil: no rule has
// the switch.
func (c *Config) SwitchStore(name string) *Store {
	for i := range c.Rules {
		if s := c.Source(c.Rules[i].Source); c.Rules[i].Mode.Switch == name && s != nil {
			return c.Store(s.StoreName())
		}
	}
	return nil
}

// Turned returns the configuration with what switches say in place of their names. word says it of one.
func (c *Config) Turned(word func(name string) string) *Config {
	if len(c.Switches()) == 0 {
		return c
	}
	turned := *c
	turned.Rules = slices.Clone(c.Rules)
	for i := range turned.Rules {
		if m := &turned.Rules[i].Mode; m.Switch != "" {
			m.Word = word(m.Switch)
		}
	}
	return &turned
}
