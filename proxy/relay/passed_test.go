package relay

import (
	"strings"
	"testing"

	"idproxy/integration/assert"
	"idproxy/rule"
)

// What is kept of such texts is bounded, and what is not kept is no reason to refuse while the
// rules are the same.
func TestPassedTextsAreBounded(t *testing.T) {
	var p passedNames
	assert.True(t, !p.MayInsert(rule.NewList([]rule.Rule{{Schema: "shop", Table: "*", Column: "id", Source: "s"}})), "a rule for any table concerns texts that there are not")
	rules := func() *rule.List {
		return rule.NewList([]rule.Rule{{Schema: "shop", Table: "orders", Column: "id", Source: "s"}})
	}
	same := rules()
	for n := range 1000 {
		p.Add([]byte("PREPARE s FROM 'SELECT "+strings.Repeat("x", n)+"'"), same)
	}
	assert.True(t, len(p.texts) <= maxPassed, "%d bytes are kept", len(p.texts))
	if p.MayInsert(same) || !p.MayInsert(rules()) {
		t.Errorf("under the same rules: %t, after a reload: %t; want false, true", p.MayInsert(same), p.MayInsert(rules()))
	}
}
