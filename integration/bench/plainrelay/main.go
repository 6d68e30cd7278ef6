// Command plainrelay is the plainest TCP relay that Go can be: two goroutines per connection, each with
// a buffer, read and write. It is what idproxy is measured against, so it does nothing else: no
// splice, no pools, no deadlines.
//
//	plainrelay LISTEN UPSTREAM
package main

import (
	"fmt"
	"net"
	"os"
	"sync"
)

// Buffers are as large as those of idproxy, which starts with the smaller size and takes the larger
// for big replies.
const (
	requestBuffer = 16 << 10
	replyBuffer   = 64 << 10
)

func main() {
	fmt.Fprintln(os.Stderr, "relay:", run(os.Args[1:]))
	os.Exit(1)
}

// run relays until it cannot, and says why.
func run(args []string) error {
	if len(args) != 2 {
		return fmt.Errorf("usage: relay LISTEN UPSTREAM, got %q", args)
	}
	listener, err := net.Listen("tcp", args[0])
	if err != nil {
		return err
	}
	for {
		client, err := listener.Accept()
		if err != nil {
			return err
		}
		go relay(client, args[1])
	}
}

// relay owns both connections: it returns only after both copies ended and both are closed.
func relay(client net.Conn, upstream string) {
	defer client.Close()
	server, err := net.Dial("tcp", upstream)
	if err != nil {
		fmt.Fprintln(os.Stderr, "relay:", err)
		return
	}
	defer server.Close()
	var wg sync.WaitGroup
	wg.Go(func() { copyBytes(server, client, requestBuffer) })
	wg.Go(func() { copyBytes(client, server, replyBuffer) })
	wg.Wait()
}

// copyBytes copies until either side ends, and ends both then.
func copyBytes(to, from net.Conn, size int) {
	defer to.Close()
	defer from.Close()
	buf := make([]byte, size)
	for {
		n, err := from.Read(buf)
		if n > 0 {
			if _, err := to.Write(buf[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}
