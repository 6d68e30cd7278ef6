package chaos

import (
	"context"
	"fmt"
	"syscall"
	"time"

	"idproxy/integration/servers"
)

// etcdMember is what a member of etcd's cluster is called.
func etcdMember(i int) string { return fmt.Sprintf("etcd%d", i) }

// etcdWay is what a process calls its way to it.
func etcdWay(i int) string { return fmt.Sprintf("raft%d", i) }

// cluster harms etcd's: a member or the leader, for itself or with another one, which leaves no
// majority.
func (n *nemesis) cluster() {
	first := n.random.IntN(members)
	who := "member"
	if n.random.IntN(2) == 0 {
		if i := n.leader(); i >= 0 {
			first, who = i, "leader"
		}
	}
	harmed := []int{first}
	if n.random.IntN(4) == 0 {
		harmed, who = append(harmed, (first+1+n.random.IntN(members-1))%members), who+" and another"
	}
	if n.random.IntN(3) == 0 {
		d := n.upTo(4 * time.Second)
		n.did("stop etcd "+who, "%v for %v", harmed, d)
		for _, i := range harmed {
			n.must("stop", n.etcd[i].Signal(syscall.SIGSTOP))
			n.stopped[i]++
			n.in(d, func() {
				n.stopped[i]--
				n.must("go on", n.etcd[i].Signal(syscall.SIGCONT))
			})
		}
		return
	}
	n.did("kill etcd "+who, "%v", harmed)
	for _, i := range harmed {
		if n.started(etcdMember(i), false) {
			n.killServer(etcdMember(i), n.etcd[i])
		}
	}
}

// leader is the number of the member that leads; -1: none does that could be asked.
func (n *nemesis) leader() int {
	for i, e := range n.etcd {
		if n.stopped[i] == 0 && n.started(etcdMember(i), false) && e.Leads() {
			return i
		}
	}
	return -1
}

// killable is a server that can be killed, and started on what it has kept.
type killable interface {
	Kill() error
	Start(ctx context.Context) error
}

var (
	_ killable = (*servers.Etcd)(nil)
	_ killable = (*servers.Redis)(nil)
	_ killable = (*servers.Server)(nil)
)

// killServer kills a server that loses nothing, and starts it again up to two seconds later.
func (n *nemesis) killServer(name string, s killable) {
	n.must("kill", s.Kill())
	up := make(chan error, 1)
	n.starting[name] = up
	n.in(n.upTo(2*time.Second), func() { go func() { up <- s.Start(n.t.Context()) }() })
}
