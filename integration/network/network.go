// Package network makes hosts of their own on one machine, Linux's network namespaces, between which
// what is sent can be lost. It needs root and iproute2.
package network

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
)

// Network is hosts that reach each other, and that the caller's own host reaches.
type Network struct {
	Here  *Host
	Hosts []*Host

	name string
}

// Host is one of them.
type Host struct {
	Netns string // its network namespace; empty: the caller's own
	IP    string

	link string // its network interface
}

// made counts networks of this process.
var made atomic.Int32

// New makes a network. Its addresses are of 198.18.0.0/15, which RFC 2544 gives to tests.
func New(hosts int) (n *Network, err error) {
	if os.Geteuid() != 0 {
		return nil, errors.New("network namespaces are made by root alone: run this as root")
	}
	number := made.Add(1)
	n = &Network{name: fmt.Sprintf("ip%d-%d", os.Getpid(), number)}
	defer func() {
		if err != nil {
			err = errors.Join(err, n.Close())
		}
	}()
	subnet := fmt.Sprintf("198.%d.%d.", 18+os.Getpid()&1, (os.Getpid()>>1+int(number))&255)
	if err := errors.Join(run("netns", "add", n.name), run("-n", n.name, "link", "add", "hub", "type", "bridge"), run("-n", n.name, "link", "set", "hub", "up")); err != nil {
		return n, err
	}
	n.Here = &Host{IP: subnet + "254", link: n.name}
	if err := n.join(n.Here, "here"); err != nil {
		return n, err
	}
	for i := range hosts {
		h := &Host{Netns: fmt.Sprintf("%s-%d", n.name, i+1), IP: fmt.Sprint(subnet, i+1), link: "hub"}
		if err := run("netns", "add", h.Netns); err != nil {
			return n, err
		}
		n.Hosts = append(n.Hosts, h)
		if err := n.join(h, fmt.Sprint("to", i+1)); err != nil {
			return n, err
		}
	}
	return n, nil
}

// join connects a host to the bridge, where its port gets a name.
func (n *Network) join(h *Host, port string) error {
	add := []string{"link", "add", h.link, "type", "veth", "peer", "name", port, "netns", n.name}
	return errors.Join(h.ip(add...), run("-n", n.name, "link", "set", port, "master", "hub", "up"),
		h.ip("addr", "add", h.IP+"/24", "dev", h.link), h.ip("link", "set", h.link, "up"), h.ip("link", "set", "lo", "up"))
}

// Close removes it. What runs on its hosts must have ended.
func (n *Network) Close() (err error) {
	for _, h := range n.Hosts {
		err = errors.Join(err, run("netns", "del", h.Netns))
	}
	return errors.Join(err, run("netns", "del", n.name)) // the interface of Here goes with its other end
}

// nobody is an Ethernet address that no host has.
const nobody = "02:00:00:00:00:99"

// Lose has all that a host sends to another one be lost from now on, and neither is told.
func (h *Host) Lose(to *Host) error {
	return h.ip("neigh", "replace", to.IP, "lladdr", nobody, "dev", h.link, "nud", "permanent")
}

// Find ends Lose.
func (h *Host) Find(to *Host) error { return h.ip("neigh", "del", to.IP, "dev", h.link) }

func (h *Host) ip(words ...string) error {
	if h.Netns != "" {
		words = append([]string{"-n", h.Netns}, words...)
	}
	return run(words...)
}

func run(words ...string) error {
	if out, err := exec.Command("ip", words...).CombinedOutput(); err != nil {
		return fmt.Errorf("ip %s: %w: %s", strings.Join(words, " "), err, out)
	}
	return nil
}
