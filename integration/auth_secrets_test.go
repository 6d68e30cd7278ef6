package integration_test

import (
	"fmt"
	"strings"
	"testing"

	"idproxy/integration/harness"
)

// Passwords and values that the tests of this package use with a proxy of startProxy. None may stand in its log.
const (
	password      = "pass-Kd83-word"
	wrongPassword = "wrong-Ux52-word"
	aValue        = "value-Qj77-text"
)

// startProxy is harness.Start with the most talkative log, which at the end of the test must not hold a secret.
func startProxy(t *testing.T, spec harness.Spec) *harness.Proxy {
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
			if err := leaks(p.Log()); err != nil {
				t.Error(err)
			}
		}
	})
	p = harness.Start(t, spec)
	return p
}

// leaks finds a password or a value in a log, whatever the case.
func leaks(log string) error {
	for line := range strings.Lines(log) {
		for _, secret := range []string{password, wrongPassword, aValue} {
			if strings.Contains(strings.ToLower(line), strings.ToLower(secret)) {
				return fmt.Errorf("the log says %q: %s", secret, line)
			}
		}
	}
	return nil
}

func TestLeaksAreFound(t *testing.T) {
	const start = "level=INFO msg=listening listen=127.0.0.1:1\n"
	for log, bad := range map[string]bool{
		start: false,
		start + "level=ERROR msg=\"You have an error near 'VALUE-QJ77-TEXT'\"\n" + start:   true,
		start + "level=DEBUG msg=login user=app password=" + password + "\n":               true,
		start + "level=DEBUG msg=\"login refused\" dsn=app:" + wrongPassword + "@tcp(x)\n": true,
	} {
		if err := leaks(log); (err != nil) != bad {
			t.Errorf("leaks(%q) = %v, want an error: %t", log, err, bad)
		}
	}
}
