package servers

import (
	"testing"

	"idproxy/integration/assert"
)

// TestPortsTaken: nobody else takes a port of a living process, which an open file stands for here.
func TestPortsTaken(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	const port = 12345
	one, other := &takenPorts{}, &takenPorts{}
	assert.True(t, assert.Of(one.take(port)).Must(t), "a free port is not given")
	assert.True(t, !assert.Of(one.take(port)).Must(t), "a port is given twice")
	assert.True(t, !assert.Of(other.take(port)).Must(t), "another process is given the port")
	assert.True(t, assert.Of(other.take(port+1)).Must(t), "another process is not given another port")
	assert.Must(t, one.file.Close())
	assert.True(t, assert.Of(other.take(port)).Must(t), "the port is not free when its process has ended")
}
