package zookeeper

import "sync"

// hosts is the order in which servers are tried, and says when all were. The client's own one
// resolves names once only.
type hosts struct {
	mu      sync.Mutex
	servers []string
	next    int
	tried   int // since one was connected to
}

// onward is the order for the next client: it begins with the server behind the last one that was tried.
func (h *hosts) onward() *hosts {
	h.mu.Lock()
	defer h.mu.Unlock()
	return &hosts{next: h.next}
}

// Init implements zk.HostProvider.
func (h *hosts) Init(servers []string) error {
	h.servers = servers
	return nil
}

// Len implements zk.HostProvider.
func (h *hosts) Len() int { return len(h.servers) }

// Next implements zk.HostProvider.
func (h *hosts) Next() (server string, pause bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.tried == len(h.servers) {
		h.tried, pause = 0, true
	}
	server = h.servers[h.next%len(h.servers)]
	h.next++
	h.tried++
	return server, pause
}

// Connected implements zk.HostProvider.
func (h *hosts) Connected() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.tried = 0
}
