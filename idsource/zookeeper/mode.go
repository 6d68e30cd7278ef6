package zookeeper

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"time"
)

var (
	errStandalone = errors.New("the server runs standalone, and does not tell when it was put back to an older state: have it run as an ensemble, of one server with standaloneEnabled=false and a server.1 line")
	errModeUnsaid = errors.New("the server does not say whether it runs in an ensemble: have it answer srvr (4lw.commands.whitelist)")
)

// reach connects to a server that runs in an ensemble. Epochs do not tell: a server that runs standalone
// on the data of an ensemble shows that one's last epoch for ever. The server is asked when the connection
// is there, for it ends with the server, and another one on this address may run otherwise.
func (s *Store) reach(network, addr string, timeout time.Duration) (net.Conn, error) {
	c, err := s.dial(network, addr, timeout)
	if err != nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.failed = err
		return nil, err
	}
	err = s.inEnsemble(network, addr, timeout)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.failed = err
	switch {
	case err == nil:
		s.unfit = nil
		return c, nil
	case errors.Is(err, errStandalone), errors.Is(err, errModeUnsaid):
		s.unfit = err
	}
	return nil, errors.Join(err, c.Close())
}

// inEnsemble asks a server how it runs, by the one command of four letters that servers answer by
// default. The server closes the connection behind its answer.
func (s *Store) inEnsemble(network, addr string, timeout time.Duration) error {
	c, err := s.dial(network, addr, timeout)
	if err != nil {
		return err
	}
	defer c.Close()
	if err := c.SetDeadline(time.Now().Add(timeout)); err != nil {
		return err
	}
	if _, err := c.Write([]byte("srvr")); err != nil {
		return err
	}
	text, err := io.ReadAll(io.LimitReader(c, 4096))
	switch {
	case bytes.Contains(text, []byte("Mode: standalone")):
		return errStandalone
	case bytes.Contains(text, []byte("Mode: ")):
		return nil
	case bytes.Contains(text, []byte("whitelist")):
		return errModeUnsaid
	}
	return errors.Join(fmt.Errorf("asked how it runs, the server says %.60q", text), err)
}
