package proxy

import (
	"errors"
	"io"

	"idproxy/proxy/decide"
	"idproxy/proxy/loaddata"
	"idproxy/proxy/protocol"
	"idproxy/proxy/wire"
)

// relayLoad passes on the file that the server asked for, with its ids.
//
// A load that must not go on is broken off by a packet out of order: both servers then roll the
// statement back, answer with an error and close the connection, while the end of the file would
// have them keep the rows so far.
func (s *session) relayLoad(l *decide.Loading) error {
	s.held.Keep()
	s.in.consume(s.holding)
	s.holding = 0
	in := &fileFrames{s: s}
	if err := in.header(); err != nil {
		return err
	}
	out := &loadFrames{s: s, l: l, seq: in.seq + s.c.FileDelta()}
	err := loaddata.Edit(out, in, &l.Format, l)
	l.RecordAll()
	switch {
	case errors.Is(err, errClientGone), errors.Is(err, errServerGone):
		return err
	case err != nil:
		l.BreakOff(err)
		if _, err := io.Copy(io.Discard, in); err != nil {
			return err
		}
	}
	s.requests.Seq = in.seq
	l.Ended(in.seq)
	s.c.Delta.Store(uint32(out.seq - in.seq))
	s.c.SetPhase(protocol.PhaseCommands)
	if err == nil {
		return s.write(wire.AppendHeader(nil, 0, out.seq))
	}
	if err := s.write(append(wire.AppendHeader(nil, 1, out.seq+64), 0)); err != nil {
		return err
	}
	if half, ok := s.server.(interface{ CloseWrite() error }); ok { // MySQL goes on to read until something ends it
		_ = half.CloseWrite()
	}
	return nil
}

// fileFrames reads the data of a file out of the client's packets.
type fileFrames struct {
	s    *session
	seq  byte // of the packet begun last
	left int  // bytes of it that were not read
	cont bool // the next one continues it
	open bool // a packet was begun
	done bool // the empty packet came
}

// header reads the header of the next packet.
func (f *fileFrames) header() error {
	in := f.s.in
	for len(in.bytes()) < wire.HeaderLen {
		if err := in.more(); err != nil {
			f.s.clientClosed(err)
			return errClientGone
		}
	}
	b := in.bytes()
	n := wire.PayloadLen(b)
	f.done = n == 0 && !f.cont
	f.seq, f.left, f.cont, f.open = b[3], n, n == wire.MaxPayload, true
	in.consume(wire.HeaderLen)
	return nil
}

// Read returns io.EOF at the end of the file, and errClientGone.
func (f *fileFrames) Read(b []byte) (int, error) {
	in := f.s.in
	for f.left == 0 {
		if f.done {
			return 0, io.EOF
		}
		if err := f.header(); err != nil {
			return 0, err
		}
	}
	for len(in.bytes()) == 0 {
		if err := in.more(); err != nil {
			f.s.clientClosed(err)
			return 0, errClientGone
		}
	}
	n := copy(b[:min(len(b), f.left)], in.bytes())
	in.consume(n)
	f.left -= n
	return n, nil
}

// loadFrames writes data to the server in packets.
type loadFrames struct {
	s   *session
	l   *decide.Loading
	seq byte // of the next one
	buf []byte
}

// Write sends b as one packet. It is never empty, and far below the size from which packets are
// split.
func (f *loadFrames) Write(b []byte) (int, error) {
	if err := f.l.Advance(); err != nil {
		return 0, err
	}
	f.buf = append(wire.AppendHeader(f.buf[:0], len(b), f.seq), b...)
	f.seq++
	return len(b), f.s.write(f.buf)
}
