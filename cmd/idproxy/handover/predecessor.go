package handover

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"

	"github.com/coreos/go-systemd/v22/activation"
	"golang.org/x/sys/unix"
)

// variable is the variable of the environment that tells a successor what its files are.
const variable = "IDPROXY_HANDOVER"

// firstFile is the number of the first file that a program is started with, beside the standard
// ones.
const firstFile = 3

// papers say what the files of a successor are: the pipe over which it reports, one pipe for each
// predecessor that may live, sockets, and the pipe over which its own predecessor tells it things.
type papers struct {
	Predecessors int     `json:"predecessors"`
	Sockets      []paper `json:"sockets"`
	Tells        bool    `json:"tells,omitempty"` // older ones do not
}

// paper says what a socket is.
type paper struct {
	Name    string `json:"name"`              // network and address, as the configuration of its opener has them
	Foreign bool   `json:"foreign,omitempty"` // systemd opened it, whose file it is
}

// maxFiles bounds what papers may say.
const maxFiles = 1 << 16

// Start is how a program came to be: by itself, by systemd with sockets, or as a successor.
type Start struct {
	Sockets *Sockets

	report *os.File // nil: there is no predecessor
	told   *os.File // nil: nobody tells anything
	once   sync.Once

	mu    sync.Mutex
	lives []*os.File // each ends with a predecessor; none when all have ended
}

// Begin takes what the program was started with out of its environment.
func Begin() (*Start, error) {
	text, successor := os.LookupEnv(variable)
	if !successor {
		s := &Start{Sockets: &Sockets{}}
		for _, f := range activation.Files(true) {
			s.Sockets.given = append(s.Sockets.given, given{paper{Foreign: true}, f})
		}
		return s, nil
	}
	if err := os.Unsetenv(variable); err != nil {
		return nil, err
	}
	var p papers
	if err := json.Unmarshal([]byte(text), &p); err != nil || p.Predecessors < 1 || p.Predecessors > maxFiles || len(p.Sockets) > maxFiles {
		return nil, fmt.Errorf("%s says %q, which no idproxy writes: unset it", variable, text)
	}
	return received(p)
}

func received(p papers) (*Start, error) {
	s := &Start{Sockets: &Sockets{}}
	files := 1 + p.Predecessors + len(p.Sockets)
	if p.Tells {
		files++
	}
	for i := range files {
		if _, err := unix.FcntlInt(uintptr(firstFile+i), unix.F_SETFD, unix.FD_CLOEXEC); err != nil {
			return nil, fmt.Errorf("%s names %d files, and file %d is not there: unset it", variable, files, firstFile+i)
		}
	}
	next := uintptr(firstFile)
	file := func(name string) *os.File {
		f := os.NewFile(next, name)
		next++
		return f
	}
	s.report = file("report")
	for range p.Predecessors {
		s.lives = append(s.lives, file("predecessor"))
	}
	for _, one := range p.Sockets {
		s.Sockets.given = append(s.Sockets.given, given{one, file(one.Name)})
	}
	if p.Tells {
		s.told = file("told")
	}
	return s, nil
}

// Hear has hear get what the predecessor tells: a JSON value before the program serves, which Hear waits for, and
// another one when the predecessor has ended in good order.
func (s *Start) Hear(hear func(value json.RawMessage) error) error {
	if s.told == nil {
		return nil
	}
	values := json.NewDecoder(io.LimitReader(s.told, maxTold))
	next := func() error {
		var value json.RawMessage
		if err := values.Decode(&value); err != nil {
			return err
		}
		return hear(value)
	}
	if err := next(); err != nil {
		return fmt.Errorf("what the predecessor tells: %w", errors.Join(err, s.told.Close()))
	}
	go func() {
		defer s.told.Close() //nolint:errcheck // it was read
		_ = next()           // a predecessor that was killed tells nothing
	}()
	return nil
}

// maxTold bounds what a predecessor may tell.
const maxTold = 1 << 26

// Succeeds reports whether the program is a successor.
func (s *Start) Succeeds() bool { return s.report != nil }

// Shares reports whether a predecessor lives, as far as Alone has found.
func (s *Start) Shares() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.lives) > 0
}

// Ready tells the predecessor that this process serves from now on. It returns the addresses of
// sockets that systemd opened and nobody listens on.
func (s *Start) Ready() (unused []string) {
	unused = s.Sockets.settle()
	s.say(report{Ready: true})
	return unused
}

// Failed tells the predecessor why this process does not come up. It does nothing after Ready.
func (s *Start) Failed(err error) { s.say(report{Problem: err.Error()}) }

func (s *Start) say(r report) {
	if s.report == nil {
		return
	}
	s.once.Do(func() {
		_ = json.NewEncoder(s.report).Encode(r) // one that is gone needs no word
		_ = s.report.Close()
	})
}

// Alone waits until no predecessor lives.
func (s *Start) Alone() error {
	s.mu.Lock()
	lives := s.lives
	s.mu.Unlock()
	var errs []error
	for _, f := range lives {
		_, err := io.Copy(io.Discard, f) // nobody writes
		errs = append(errs, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	closeAll(lives)
	s.lives = nil
	return errors.Join(errs...)
}

// report is what a successor says.
type report struct {
	Ready   bool   `json:"ready"`
	Problem string `json:"problem,omitempty"`
}
