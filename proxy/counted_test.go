package proxy

import (
	"fmt"
	"maps"
	"testing"

	"github.com/go-mysql-org/go-mysql/mysql"

	"idproxy/proxy/stats"
	"idproxy/rule"
)

// TestCommandsAreCounted: each command once, as what became of it, also once its session has ended.
func TestCommandsAreCounted(t *testing.T) {
	var told []RefusedStatement
	counts := &rule.Counts{}
	r := start(t, func(c *Config, live *Settings) {
		c.OnRefused = func(r RefusedStatement) { told = append(told, r) }
		live.Rules = countedRules(counts)
	})
	c := r.client()
	type key struct {
		kind stats.Kind
		form stats.Form
	}
	commands := func() map[key]uint64 {
		found := map[key]uint64{}
		sum := r.srv.Listeners()[0].Counts
		for k := range sum.Commands {
			for f := range sum.Commands[k] {
				if n := sum.Commands[k][f].Load(); n > 0 {
					found[key{stats.Kind(k), stats.Form(f)}] = n
				}
			}
		}
		return found
	}
	want := map[key]uint64{}
	for _, tt := range []struct {
		text string
		kind stats.Kind
	}{
		{"SELECT 1", stats.Forwarded},
		{"INSERT INTO other (a) VALUES (1)", stats.Forwarded},
		{"INSERT INTO orders (a) VALUES (1),(2)", stats.Filled},
		{"INSERT INTO orders (id, a) VALUES (7, 1)", stats.Forwarded}, // held, and it brings its id
		{refusedText, stats.Refused},
		{"CALL p()", stats.Unseen},
		{"EXECUTE s", stats.Unseen}, // held, and nothing is known of the name
	} {
		c.query(tt.text)
		want[key{tt.kind, stats.Query}]++
		// A command is counted just behind its reply.
		waitFor(t, func() bool { return maps.Equal(commands(), want) })
	}
	if len(told) != 1 || told[0].Reason != rule.OtherForm.String() || told[0].Code != mysql.ER_NOT_SUPPORTED_YET || told[0].Statement == "" || told[0].Rule != "shop.orders.id" {
		t.Errorf("told %+v", told)
	}
	ids, _, refused := counts.Load()
	if ids != 2 || refused[rule.OtherForm] != 1 {
		t.Errorf("the rule has %d ids, refused %v", ids, refused)
	}
	before := r.srv.Listeners()[0]
	if n := before.Errors[stats.Error{Code: mysql.ER_NOT_SUPPORTED_YET, Side: stats.Proxy}]; n != 1 || before.Open != 1 || before.LoggedIn != 1 || before.Accepted != 1 {
		t.Errorf("%+v", before)
	}
	if before.Counts.FromClient.Load() == 0 || before.Counts.FromServer.Load() == 0 || before.Held == 0 || len(before.Questions) == 0 {
		t.Errorf("bytes %d and %d, held %d, questions %v", before.Counts.FromClient.Load(), before.Counts.FromServer.Load(), before.Held, before.Questions)
	}
	waitFor(t, func() bool { return r.srv.Sessions()[0].State == Idle })
	if s := r.srv.Sessions(); len(s) != 1 || s[0].Counts.Total() == 0 || !r.srv.CloseSession(s[0].ID) || r.srv.CloseSession(s[0].ID+1) {
		t.Errorf("sessions %+v", s)
	}
	waitFor(t, func() bool { return r.srv.Listeners()[0].Open == 0 })
	if got := commands(); !maps.Equal(got, want) {
		t.Errorf("behind the session %v, want %v", got, want)
	}
	if after := r.srv.Listeners()[0]; fmt.Sprint(after.Errors) != fmt.Sprint(before.Errors) {
		t.Errorf("errors %v, then %v", before.Errors, after.Errors)
	}
}
