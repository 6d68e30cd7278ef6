package resp

import (
	"context"
	"crypto/sha1"
	"encoding/hex"
	"fmt"
	"net"
	"strconv"
	"strings"
)

// slots is how many slots the keys of a cluster are divided into.
// https://redis.io/docs/latest/operate/oss_and_stack/reference/cluster-spec/
const slots = 16384

// mover is the error of a Source that another process gives ids of.
type mover interface {
	error
	MovedTo() string // host:port; empty: it is not known
}

// appendMoved tells a client whom to ask instead.
func appendMoved(b []byte, key, to string) []byte {
	if to == "" {
		return appendError(b, "CLUSTERDOWN no process gives ids of key '%.100s' at the moment", key)
	}
	return appendError(b, "MOVED %d %s", slotOf(key), to)
}

// slotOf is the slot of a key: of what stands between its first braces, if that is something.
func slotOf(key string) int {
	if _, behind, ok := strings.Cut(key, "{"); ok {
		if tag, _, ok := strings.Cut(behind, "}"); ok && tag != "" {
			key = tag
		}
	}
	var crc uint16 // CRC-16/XMODEM
	for i := range len(key) {
		crc ^= uint16(key[i]) << 8
		for range 8 {
			if crc&0x8000 != 0 {
				crc = crc<<1 ^ 0x1021
			} else {
				crc <<= 1
			}
		}
	}
	return int(crc) % slots
}

// mode is what clients call this.
func (s *Server) mode() string {
	if s.cfg.Cluster != nil {
		return "cluster"
	}
	return "standalone"
}

func newClusterCommands() []command {
	return []command{
		{"ASKING", 1, 1, flagTalk, 0, false, "Answers.", (*client).ok},
		{"CLUSTER", 2, maxArgs, flagTalk, 0, false, "SLOTS, SHARDS, NODES, INFO, KEYSLOT: tells who gives ids.", (*client).cluster},
		{"READONLY", 1, 1, flagTalk, 0, false, "Answers.", (*client).ok},
		{"READWRITE", 1, 1, flagTalk, 0, false, "Answers.", (*client).ok},
	}
}

func (cl *client) ok(_ context.Context, b []byte, _ []string) []byte { return appendSimple(b, "OK") }

// node is a member of the cluster, as it is told. The one that gives ids has all slots.
type node struct {
	id, host string
	port     int
}

// nodeOf returns the node at an address; false: it is none.
func nodeOf(addr string) (n node, ok bool) {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return n, false
	}
	if n.port, err = strconv.Atoi(port); err != nil {
		return n, false
	}
	sum := sha1.Sum([]byte(addr)) // as long as the ids of Redis
	n.id, n.host = hex.EncodeToString(sum[:]), host
	return n, true
}

// nodes returns the node that gives ids, and the others behind it; none where that is not known.
func (s *Server) nodes() (all []node) {
	to := s.cfg.Cluster()
	first, ok := nodeOf(to)
	if !ok {
		return nil
	}
	all = append(all, first)
	for _, addr := range s.cfg.Members {
		if n, ok := nodeOf(addr); ok && addr != to {
			all = append(all, n)
		}
	}
	return all
}

// cluster answers CLUSTER: the node that gives ids has all slots, and the others are its replicas.
func (cl *client) cluster(_ context.Context, b []byte, args []string) []byte {
	all := cl.s.nodes()
	known := len(all) > 0
	switch sub := strings.ToUpper(args[1]); {
	case sub == "KEYSLOT" && len(args) == 3:
		return appendInt(b, int64(slotOf(args[2])))
	case sub == "INFO":
		state := "ok"
		if !known {
			state = "fail"
		}
		return cl.appendText(b, fmt.Sprintf("cluster_enabled:1\r\ncluster_state:%s\r\ncluster_slots_assigned:%d\r\ncluster_known_nodes:%d\r\ncluster_size:1\r\n", state, slots, len(all)))
	case !known && (sub == "SLOTS" || sub == "SHARDS"):
		return appendLength(b, '*', 0)
	case sub == "NODES":
		text := ""
		for i, n := range all {
			role := fmt.Sprintf("slave %s 0 0 1 connected", all[0].id)
			if i == 0 {
				role = fmt.Sprintf("master - 0 0 1 connected 0-%d", slots-1)
			}
			text += fmt.Sprintf("%s %s@0 %s\n", n.id, net.JoinHostPort(n.host, strconv.Itoa(n.port)), role)
		}
		return cl.appendText(b, text)
	case sub == "SLOTS":
		b = appendLength(appendLength(b, '*', 1), '*', 2+len(all))
		b = appendInt(appendInt(b, 0), slots-1)
		for _, n := range all {
			b = appendInt(appendBulk(appendLength(b, '*', 4), n.host), int64(n.port))
			b = appendLength(appendBulk(b, n.id), '*', 0)
		}
		return b
	case sub == "SHARDS":
		b = cl.appendMap(appendLength(b, '*', 1), 2)
		b = appendInt(appendInt(appendLength(appendBulk(b, "slots"), '*', 2), 0), slots-1)
		b = appendLength(appendBulk(b, "nodes"), '*', len(all))
		for i, n := range all {
			b = cl.appendMap(b, 7)
			b = appendBulk(appendBulk(b, "id"), n.id)
			b = appendInt(appendBulk(b, "port"), int64(n.port))
			b = appendBulk(appendBulk(b, "ip"), n.host)
			b = appendBulk(appendBulk(b, "endpoint"), n.host)
			b = appendBulk(appendBulk(b, "role"), []string{"master", "replica"}[min(i, 1)])
			b = appendInt(appendBulk(b, "replication-offset"), 0)
			b = appendBulk(appendBulk(b, "health"), "online")
		}
		return b
	}
	return appendError(b, "ERR unknown subcommand or wrong number of arguments for '%.40s'", args[1])
}
