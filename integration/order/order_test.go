package order

import (
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"idproxy/integration/assert"
	"idproxy/integration/harness"
)

// shownLeader is the leader that idproxy source show names.
func shownLeader(t *testing.T, config string) string {
	t.Helper()
	program, err := harness.Build()
	assert.Must(t, err)
	out, err := exec.CommandContext(t.Context(), program, "source", "show", "order_id", "--config", config).CombinedOutput()
	assert.Must(t, err, string(out))
	_, leader, _ := strings.Cut(string(out), "\nleader  ")
	leader, _, _ = strings.Cut(leader, "\n")
	return leader
}

// TestTwoProxies: ids ascend from call to call, whichever proxy is asked, over a clean stop and a kill
// of the one that leads.
func TestTwoProxies(t *testing.T) {
	w := newWorld(t, 1)
	var proxies []*harness.Proxy
	for range 3 {
		proxies = append(proxies, harness.Start(t, harness.Spec{Config: w.config(t, "127.0.0.1:1", "false"), MayFail: true}))
	}
	all := slices.Clone(proxies)
	var last int64
	ascending := func(rounds int) {
		t.Helper()
		for range rounds {
			for _, p := range proxies {
				id := incr(t, clientOf(t, addrOf(t, p)), "orders")
				assert.True(t, id > last, "id %d was given after %d", id, last)
				last = id
			}
		}
	}
	ascending(20)
	lead := leads(t, proxies)
	configured, err := os.ReadFile(proxies[lead].ConfigPath)
	shown := shownLeader(t, proxies[(lead+1)%3].ConfigPath)
	assert.True(t, err == nil && strings.Contains(string(configured), fmt.Sprintf("order:     {listen: %q", shown)), "source show names the leader %q, which has %s, %v", shown, configured, err)
	assert.Must(t, proxies[lead].Kill())
	killed := time.Now()
	proxies = slices.Delete(proxies, lead, lead+1)
	ascending(1)
	t.Logf("ids again %v after a kill", time.Since(killed).Round(time.Millisecond))
	ascending(20)
	lead = leads(t, proxies)
	stopped := time.Now()
	assert.Must(t, proxies[lead].Stop(time.Minute))
	took := time.Since(stopped)
	proxies = slices.Delete(proxies, lead, lead+1)
	ascending(1)
	t.Logf("ids again %v after a clean stop, which took %v", time.Since(stopped).Round(time.Millisecond), took.Round(time.Millisecond))
	ascending(20)
	more := int64(terms(all...) - 3) // terms than there were leaders
	// A kill loses a range, a clean stop none.
	assert.True(t, last <= (1+more)*1000+3*63, "%d ids for %d calls, in %d terms", last, 3*21+2*21, 3+more)
	if own := int64(terms(proxies[0])); own < 1 || own > 1+more {
		t.Errorf("the last proxy leads %d times:\n%s", own, proxies[0].Log())
	}
}
