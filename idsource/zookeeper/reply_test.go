package zookeeper

import (
	"testing"

	"github.com/go-zookeeper/zk"

	"idproxy/integration/assert"
)

// TestLastStat: a reply that has not what was asked for is an error.
func TestLastStat(t *testing.T) {
	whole := zk.MultiResponse{Stat: &zk.Stat{}}
	for _, r := range [][]zk.MultiResponse{nil, {whole}, {whole, {}}, {whole, whole, whole}} {
		stat, err := lastStat(r, 2)
		assert.True(t, err != nil && stat == nil, "%+v: %v", r, stat)
	}
	stat, err := lastStat([]zk.MultiResponse{{}, whole}, 2)
	assert.True(t, err == nil && stat != nil, "%v %v", stat, err)
}
