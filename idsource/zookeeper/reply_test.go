package zookeeper

import (
	"testing"

	"github.com/go-zookeeper/zk"
)

// TestLastStat: a reply that has not what was asked for is an error.
func TestLastStat(t *testing.T) {
	whole := zk.MultiResponse{Stat: &zk.Stat{}}
	for _, r := range [][]zk.MultiResponse{nil, {whole}, {whole, {}}, {whole, whole, whole}} {
		if stat, err := lastStat(r, 2); err == nil || stat != nil {
			t.Errorf("%+v: %v", r, stat)
		}
	}
	if stat, err := lastStat([]zk.MultiResponse{{}, whole}, 2); err != nil || stat == nil {
		t.Error(stat, err)
	}
}
