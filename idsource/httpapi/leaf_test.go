package httpapi

import (
	"net/http"
	"strings"
	"testing"

	"idproxy/integration/assert"
)

// TestLeaf: ids as text, and errors as Leaf's clients know them.
func TestLeaf(t *testing.T) {
	w := newWorld(t, Config{})
	for _, tt := range []struct {
		path   string
		status int
		want   string // part of the body
	}{
		{"/api/segment/get/orders", 200, "1"},
		{"/api/segment/get/orders", 200, "2"},
		{"/api/segment/get/none", 500, `"message":"Result{id=-2, status=EXCEPTION}","path":"/api/segment/get/none"`},
		{"/api/segment/get/events", 500, "Result{id=-2, status=EXCEPTION}"}, // no segment: a program may count on small numbers
		{"/api/snowflake/get/orders", 500, "Result{id=-2, status=EXCEPTION}"},
		{"/api/segment/get/links", 500, "Result{id=-2, status=EXCEPTION}"},
		{"/api/snowflake/get/docs", 500, "Result{id=-2, status=EXCEPTION}"},
		{"/api/segment/get/broken", 500, "Result{id=-3, status=EXCEPTION}"},
		{"/api/segment/get/last", 500, `above 2^63-1`},
		{"/api/snowflake/get", 404, "no-such-path"},
	} {
		a := w.ask(t, "GET", tt.path, "")
		assert.True(t, a.status == tt.status && strings.Contains(a.body, tt.want) && (tt.status != 200 || a.body == tt.want), "%s: %d %s, want %d %s", tt.path, a.status, a.body, tt.status, tt.want)
		if a.status == 500 && (!strings.Contains(a.body, `"exception":"com.sankuai.inf.leaf.server.exception.LeafServerException"`) || strings.Contains(a.body, "10.9.8.7")) {
			t.Errorf("%s: %s", tt.path, a.body)
		}
	}
	a := w.ask(t, "POST", "/api/snowflake/get/events", "")
	assert.True(t, a.status == http.StatusOK && len(a.body) >= 15, "a snowflake: %d %s", a.status, a.body)
	if a := w.ask(t, "GET", "/api/snowflake/get/events", "", "Accept", "application/json, application/*+json"); a.status != http.StatusOK || a.header.Get("Content-Type") != "application/json" {
		t.Errorf("for those who read JSON alone: %d %s %s", a.status, a.header.Get("Content-Type"), a.body)
	}
	w.sources["hidden"] = scattered{&counter{}}
	for path, want := range map[string]int{"/api/segment/get/hidden": 200, "/api/snowflake/get/hidden": 500, "/tinyid/id/nextSegmentIdSimple?bizType=hidden&token=": 200} {
		a := w.ask(t, "GET", path, "")
		assert.True(t, a.status == want && (!strings.Contains(path, "Simple") || a.body == ""), "%s of scrambled ids: %d %s", path, a.status, a.body)
	}
	w.sources["a b/c"] = &counter{}
	if a := w.ask(t, "GET", "/api/segment/get/a%20b%2Fc", ""); a.body != "0" {
		t.Errorf("a key with marks: %d %s", a.status, a.body)
	}
}
