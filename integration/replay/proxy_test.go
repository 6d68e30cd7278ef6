package replay

import (
	"testing"

	"idproxy/integration/assert"
)

func TestLeaksAreFound(t *testing.T) {
	const start = "level=INFO msg=listening listen=127.0.0.1:1\n"
	for log, bad := range map[string]bool{
		start: false,
		start + "level=ERROR msg=\"You have an error near 'VALUE-QJ77-TEXT'\"\n" + start:   true,
		start + "level=DEBUG msg=login user=app password=" + Password + "\n":               true,
		start + "level=DEBUG msg=\"login refused\" dsn=app:" + WrongPassword + "@tcp(x)\n": true,
	} {
		err := leaks(log)
		assert.True(t, (err != nil) == bad, "leaks(%q) = %v, want an error: %t", log, err, bad)
	}
}
