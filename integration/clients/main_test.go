package clients

import (
	"testing"

	"idproxy/integration/harness"
)

func TestMain(m *testing.M) { harness.Main(m, "--performance-schema=ON") }
