package replay

import (
	"fmt"
	"strings"
	"testing"

	"idproxy/integration/assert"
	"idproxy/integration/harness"
)

// Passwords and values that the tests of this package use with a proxy of startProxy. None may
// stand in its log.
const (
	Password      = "pass-Kd83-word"
	WrongPassword = "wrong-Ux52-word"
	Value         = "value-Qj77-text"
)

// StartProxy is harness.Start with the most talkative log, which at the end of the test must not
// hold a secret.
func StartProxy(t *testing.T, spec harness.Spec) *harness.Proxy {
	t.Helper()
	if spec.Dir == "" {
		spec.Dir = t.TempDir()
	}
	if !strings.Contains(spec.Config, "\nlog:") {
		spec.Config += "\nlog: {level: debug}\n"
	}
	var p *harness.Proxy
	t.Cleanup(func() { // runs when the proxy has ended
		if p != nil {
			assert.NoError(t, leaks(p.Log()))
		}
	})
	p = harness.Start(t, spec)
	return p
}

// leaks finds a password or a value in a log, whatever the case.
func leaks(log string) error {
	for line := range strings.Lines(log) {
		for _, secret := range []string{Password, WrongPassword, Value} {
			if strings.Contains(strings.ToLower(line), strings.ToLower(secret)) {
				return fmt.Errorf("the log says %q: %s", secret, line)
			}
		}
	}
	return nil
}
