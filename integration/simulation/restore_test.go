package simulation

import (
	"encoding/json"
	"strconv"
	"time"
)

// restore has an older state be a new cluster, as a snapshot is restored: that of a while before, or of just
// before the newest term. Processes are started again, or who leads runs on and has to notice. Later an
// operator moves the key above all ids in use. The caller holds mu.
func (f *orders) restore(x fault) {
	w, c := f.w, f.cluster
	if f.first.IsZero() { // there is nothing to go back to
		return
	}
	var leader *process
	for _, h := range w.hosts {
		if p := h.runs; p != nil && f.leads(p) && x.host%2 == 0 {
			leader = p
			continue
		}
		if h.runs != nil {
			h.runs.kill()
		}
		h.startIn(x.lasts)
	}
	f.next = max(f.next, c.next())
	to := time.Now().Add(-time.Duration(x.size))
	if x.size%2 == 0 && f.taken.After(to) {
		to = f.taken.Add(-1)
	}
	if to.Before(f.first) { // what was before the first id has nothing to go back to
		to = f.first
	}
	c.elect(x.lasts)
	c.back(to)
	c.id++
	f.old = leader
	time.AfterFunc(x.lasts+between(w.chance(uint64(x.at)), 0, 5*time.Second), func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		f.mend()
	})
}

// mend is what idproxy source set does. The caller holds mu.
func (f *orders) mend() {
	if c := f.cluster; f.next > 0 && c.next() > 0 {
		c.put(c.revision+1, seriesKey, position{Next: f.next + 1, Used: true, Cluster: strconv.FormatUint(c.id, 16)}.text())
		f.w.stops++
	}
	f.next = 0
}

// position is what etcd keeps of the series.
type position struct {
	Next    uint64 `json:"next"`
	Used    bool   `json:"used"`
	Cluster string `json:"cluster"`
}

func (p position) text() []byte {
	text, err := json.Marshal(p)
	if err != nil {
		panic(err)
	}
	return text
}

// next is where the series stands; 0: nowhere.
func (c *cluster) next() uint64 {
	var p position
	if kv, ok := c.keys[seriesKey]; ok {
		if err := json.Unmarshal(kv.Value, &p); err != nil {
			panic(err)
		}
	}
	return p.Next
}
