package proxy

import (
	"context"
	"maps"
	"sync/atomic"
	"testing"
	"time"

	"idproxy/idsource"
	"idproxy/proxy/wire"
	"idproxy/rule"
)

// compared counts how often it was compared with a column.
type compared struct {
	counter
	times atomic.Int32
}

func (c *compared) Series(string, string) (idsource.Series, error) { return c, nil }

func (c *compared) Admit(context.Context, string, uint64) error {
	c.times.Add(1)
	return nil
}

// TestSourceReplaced: an INSERT whose source is closed waits for the one that takes its place, and is
// decided on anew: the column is compared with it.
func TestSourceReplaced(t *testing.T) {
	r := start(t, func(_ *Config, live *Settings) { live.IDWait = patience })
	c := r.client()
	insert := func() {
		t.Helper()
		if ok := c.query("INSERT INTO orders (a) VALUES (1)"); ok[0] != wire.OKByte {
			t.Fatalf("%q", ok)
		}
	}
	insert()
	r.ids.set(idsource.NewError("s", idsource.Closed, nil, ""), false)
	fresh := &compared{}
	go func() {
		for r.ids.refused.Load() == 0 && t.Context().Err() == nil { // until the INSERT has come
			time.Sleep(time.Millisecond)
		}
		live := *r.srv.settings()
		live.Sources, live.Eras = map[string]idsource.Source{"s": fresh}, map[string]uint64{"s": 1}
		rules := *theRules.Match([]byte("shop"), []byte("orders"), false)[0]
		rules.Era = 1
		live.Rules = maps.Clone(live.Rules)
		live.Rules["l"] = rule.NewList([]rule.Rule{rules})
		r.srv.Set(&live)
	}()
	insert()
	if admitted := fresh.times.Load(); admitted != 1 {
		t.Errorf("the column was compared with the new source %d times, want once", admitted)
	}
}
