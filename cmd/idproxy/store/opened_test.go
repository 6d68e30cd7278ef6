package store

import (
	"slices"
	"testing"

	"idproxy/integration/assert"
)

func TestMatching(t *testing.T) {
	keys := []string{"ids_a", "ids_", "ids.a", "a_b", "xids_a"}
	got := Matching("ids_{table}", keys)
	assert.True(t, slices.Equal(got, []string{"ids_a"}), "got %q", got)
	got = Matching("{schema}.{table}", keys)
	assert.True(t, slices.Equal(got, []string{"ids.a"}), "got %q", got)
}
