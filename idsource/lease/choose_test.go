package lease

import (
	"testing"

	"idproxy/integration/assert"
)

func TestChoose(t *testing.T) {
	l := Rules{Ahead: 3000, Lead: 8000, Reclaim: 20000}
	free := func(beat, fence int64) Record { return Record{State: Free, Beat: beat, Fence: fence} }
	held := func(beat int64) Record { return Record{State: Held, Beat: beat, Fence: beat + 8000} }
	const now = 100_000
	for _, tt := range []struct {
		name           string
		all            map[uint64]Record
		reclaim, spare bool
		want           Verdict
		worker         uint64
		wait           int64
	}{
		{name: "nothing", want: Empty},
		{name: "dropped", all: map[uint64]Record{0: {State: Dropped}}, reclaim: true, want: Empty},
		{name: "the one whose fence is past for longest", all: map[uint64]Record{0: free(10, 50), 1: free(40, 20), 2: free(30, 30)}, worker: 1},
		{name: "the lowest of equals", all: map[uint64]Record{5: free(20, 9), 3: free(20, 9), 4: free(20, 9)}, worker: 3},
		{name: "a fence ahead comes last", all: map[uint64]Record{0: free(10, now+2000), 1: free(50, now+1000), 2: free(60, now-1)}, worker: 2},
		{name: "one that can be used a little ahead of the clock", all: map[uint64]Record{0: free(10, now+7999)}, worker: 0},
		{name: "one that cannot be used", all: map[uint64]Record{0: free(10, now+8000), 1: held(now)}, want: Empty, worker: 0},
		{name: "when it can be", all: map[uint64]Record{0: free(10, now+9000), 1: held(now)}, reclaim: true, want: Wait, worker: 0, wait: 1001},
		{name: "a silent one before one far ahead", all: map[uint64]Record{0: free(10, now+9000), 1: held(now - 30000)}, reclaim: true, worker: 1},
		{name: "a silent one far ahead is left", all: map[uint64]Record{
			0: {State: Held, Beat: now - 40000, Fence: now + 9000}, 1: held(now - 30000),
		}, reclaim: true, worker: 1},
		{name: "held ones are not taken", all: map[uint64]Record{0: held(1)}, want: Empty},
		{name: "silent for longest", all: map[uint64]Record{0: held(now - 30000), 1: held(now - 40000)}, reclaim: true, worker: 1},
		{name: "silent for too short", all: map[uint64]Record{0: held(now - 5000), 1: held(now - 7000)}, reclaim: true, want: Wait, worker: 1, wait: 13000},
		{name: "a heartbeat to come", all: map[uint64]Record{0: held(now + 5000)}, reclaim: true, want: Wait, wait: 25000},
		{name: "free before silent", all: map[uint64]Record{0: held(1), 1: free(now, now)}, reclaim: true, worker: 1},
		{name: "spare", all: map[uint64]Record{0: held(now), 1: free(5, 2), 2: free(4, 1)}, spare: true, worker: 2},
		{name: "spare, far ahead", all: map[uint64]Record{0: free(5, now+9000)}, spare: true, want: Empty},
		{name: "spare, as many free as held", all: map[uint64]Record{0: held(now), 1: free(5, 0)}, spare: true, want: Empty},
	} {
		w, wait, v := l.Choose(tt.all, now, tt.reclaim, tt.spare)
		assert.True(t, v == tt.want && w == tt.worker && wait == tt.wait, "%s: number %d, wait %d, %v; want %d, %d, %v", tt.name, w, wait, v, tt.worker, tt.wait, tt.want)
	}
}
