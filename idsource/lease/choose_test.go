package lease

import "testing"

func TestChoose(t *testing.T) {
	l := Rules{Ahead: 3000, Reclaim: 20000}
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
		{name: "free for longest", all: map[uint64]Record{0: free(50, 0), 1: free(20, 0), 2: free(30, 0)}, worker: 1},
		{name: "the lowest of equals", all: map[uint64]Record{5: free(20, 0), 3: free(20, 0), 4: free(20, 0)}, worker: 3},
		{name: "a fence far ahead comes last", all: map[uint64]Record{0: free(10, now+3001), 1: free(50, now+3000)}, worker: 1},
		{name: "unless there is no other", all: map[uint64]Record{0: free(10, now+9000), 1: held(now)}, worker: 0},
		{name: "held ones are not taken", all: map[uint64]Record{0: held(1)}, want: Empty},
		{name: "silent for longest", all: map[uint64]Record{0: held(now - 30000), 1: held(now - 40000)}, reclaim: true, worker: 1},
		{name: "silent for too short", all: map[uint64]Record{0: held(now - 5000), 1: held(now - 7000)}, reclaim: true, want: Wait, worker: 1, wait: 13000},
		{name: "a heartbeat to come", all: map[uint64]Record{0: held(now + 5000)}, reclaim: true, want: Wait, wait: 25000},
		{name: "free before silent", all: map[uint64]Record{0: held(1), 1: free(now, 0)}, reclaim: true, worker: 1},
		{name: "spare", all: map[uint64]Record{0: held(now), 1: free(5, 0), 2: free(4, 0)}, spare: true, worker: 2},
		{name: "spare, as many free as held", all: map[uint64]Record{0: held(now), 1: free(5, 0)}, spare: true, want: Empty},
	} {
		w, wait, v := l.Choose(tt.all, now, tt.reclaim, tt.spare)
		if v != tt.want || w != tt.worker || wait != tt.wait {
			t.Errorf("%s: number %d, wait %d, %v; want %d, %d, %v", tt.name, w, wait, v, tt.worker, tt.wait, tt.want)
		}
	}
}
