package segment

import (
	"testing"

	"idproxy/idsource/sourcetest"
)

func BenchmarkSegment(b *testing.B) {
	sourcetest.MeasureFill(b, newTestSegment(b, Config{Store: newFaultStore(), Step: 1_000_000}))
}
