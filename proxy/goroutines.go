package proxy

import "sync"

// runInGoroutines drives a session by two goroutines, one for each lane. It returns when the session
// has ended.
func runInGoroutines(s *session) {
	var lanes sync.WaitGroup
	lanes.Go(func() {
		defer s.gone.End(errServerGone)
		defer s.recover()
		toClient{s}.run()
	})
	lanes.Go(func() {
		defer s.recover()
		toServer{s}.run()
	})
	lanes.Wait()
	s.end()
}

// run relays the client's bytes until the client closes.
func (s toServer) run() {
	s.in = newInlet(s.client, &s.up, &s.stats.FromClient)
	defer s.in.release()
	for {
		if err := s.in.more(); err != nil {
			s.clientClosed(err)
			return
		}
		if err := s.requested(s.in); err != nil {
			s.stop(err)
			return
		}
	}
}

// run relays the server's bytes until the server closes.
func (s toClient) run() {
	in := newInlet(s.server, &s.down, &s.stats.FromServer)
	defer in.release()
	for {
		if err := in.more(); err != nil {
			s.serverClosed()
			return
		}
		if err := s.relay(in); err != nil {
			s.close(err)
			return
		}
	}
}
