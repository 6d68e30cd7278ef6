package store

import (
	"slices"
	"testing"
)

func TestMatching(t *testing.T) {
	keys := []string{"ids_a", "ids_", "ids.a", "a_b", "xids_a"}
	if got := Matching("ids_{table}", keys); !slices.Equal(got, []string{"ids_a"}) {
		t.Errorf("got %q", got)
	}
	if got := Matching("{schema}.{table}", keys); !slices.Equal(got, []string{"ids.a"}) {
		t.Errorf("got %q", got)
	}
}
