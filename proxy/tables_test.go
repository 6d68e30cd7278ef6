package proxy

import (
	"strings"
	"testing"
	"time"

	"idproxy/proxy/catalog"
)

// New rules may name columns that were not asked for.
func TestNewRulesForgetTables(t *testing.T) {
	srv := New(Config{Listeners: []Listener{{Name: "a", Upstreams: []Upstream{{Addr: Address{Net: "tcp", Addr: "h:1"}}}}}}, &Settings{})
	tb := srv.listeners[0].servers[0].tables
	tb.Put("k", &catalog.Table{At: time.Now(), Changes: tb.Count()})
	if tb.Get([]byte("k")) == nil {
		t.Fatal("facts are not kept")
	}
	srv.Set(&Settings{})
	if tb.Get([]byte("k")) != nil {
		t.Error("facts are kept under new rules")
	}
}

// says reports whether err is nil for "", and contains the text else.
func says(err error, text string) bool {
	return (err == nil) == (text == "") && (err == nil || strings.Contains(err.Error(), text))
}
