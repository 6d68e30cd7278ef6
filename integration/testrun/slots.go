package main

import (
	"fmt"
	"io"
	"net"
	"path/filepath"
	"reflect"
	"runtime"

	"idproxy/integration/process"
)

// slots are how many tests that have servers may run at once.
const slots = 4

// startsServers is the name of the function that starts servers and idproxy. The linker leaves it out
// of programs that cannot reach that function.
var startsServers = runtime.FuncForPC(reflect.ValueOf(process.Start).Pointer()).Name()

// giveSlots gives slots to those that take them, see takeSlot, until the listener that it returns is
// closed. Those that come first have theirs first, as connections wait for a listener in the order in
// which they were made.
func giveSlots(dir string) (net.Listener, error) {
	listener, err := net.Listen("unix", slotsPath(dir))
	if err != nil {
		return nil, fmt.Errorf("wait for tests: %w", err)
	}
	for range slots {
		go func() {
			for {
				conn, err := listener.Accept()
				if err != nil {
					return
				}
				_, _ = conn.Write([]byte{0})     // fails when the test has ended,
				_, _ = io.Copy(io.Discard, conn) // which this shows as well
				_ = conn.Close()
			}
		}()
	}
	return listener, nil
}

// takeSlot waits until there is a slot. It is free again when the connection is closed, or its process
// has ended.
func takeSlot(dir string) (net.Conn, error) {
	conn, err := net.Dial("unix", slotsPath(dir))
	if err != nil {
		return nil, fmt.Errorf("wait for a slot: %w", err)
	}
	if _, err := io.ReadFull(conn, make([]byte, 1)); err != nil {
		return nil, fmt.Errorf("wait for a slot: %w", err)
	}
	return conn, nil
}

// slotsPath is a unix socket's.
func slotsPath(dir string) string { return filepath.Join(dir, "slots") }
