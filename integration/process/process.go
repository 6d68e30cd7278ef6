package process

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"time"
)

// Spec says what to run.
type Spec struct {
	Path string   // program
	Args []string // without the program's name
	Dir  string   // working folder; default: the starter's
	Env  []string // added to the starter's environment
	Log  string   // file that stdout and stderr are appended to; required

	Netns string // network namespace; default: the starter's
}

// Process is a started program.
type Process struct {
	spec Spec
	cmd  *exec.Cmd
	done chan struct{} // closed once the program has ended
	err  error         // how it ended; valid once done is closed
}

// Start runs the program and returns as soon as it exists.
func Start(spec Spec) (*Process, error) {
	log, err := os.OpenFile(spec.Log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open log of %s: %w", spec.Path, err)
	}
	defer log.Close()
	cmd := exec.Command(spec.Path, spec.Args...)
	if spec.Netns != "" { // it becomes the program, so that the number of the process stays
		cmd = exec.Command("ip", append([]string{"netns", "exec", spec.Netns, spec.Path}, spec.Args...)...)
	}
	cmd.Dir, cmd.Env = spec.Dir, append(os.Environ(), spec.Env...)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	p := &Process{spec: spec, cmd: cmd, done: make(chan struct{})}
	started := make(chan error)
	go p.own(started)
	if err := <-started; err != nil {
		return nil, fmt.Errorf("start %s: %w", spec.Path, err)
	}
	return p, nil
}

// own starts the program and waits for its end, on one thread kept for it alone: the parent-death
// signal fires when the thread that forked ends, not the process, and Go's threads may end at any
// time.
func (p *Process) own(started chan<- error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	err := p.cmd.Start()
	started <- err
	if err != nil {
		return
	}
	p.err = p.cmd.Wait()
	close(p.done)
}

// PID is the program's process id, which is also its group's.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Done is closed when the program has ended.
func (p *Process) Done() <-chan struct{} { return p.done }

// Wait waits for the program's end. It returns nil for exit status 0, an *exec.ExitError for
// another end, and the context's cause when that comes first.
func (p *Process) Wait(ctx context.Context) error {
	select {
	case <-p.done:
		return p.err
	case <-ctx.Done():
		return fmt.Errorf("wait for %s: %w", p.spec.Path, context.Cause(ctx))
	}
}

// Signal sends sig to the program and whatever it started. A program that has ended is not an
// error.
func (p *Process) Signal(sig syscall.Signal) error {
	select {
	case <-p.done: // its number may be somebody else's by now
		return nil
	default:
	}
	if err := syscall.Kill(-p.PID(), sig); err != nil && !errors.Is(err, syscall.ESRCH) {
		return fmt.Errorf("signal %s: %w", p.spec.Path, err)
	}
	return nil
}

// Stop asks the program to end with SIGTERM, waits up to grace, then kills it. It returns how the
// program ended, and an error when it had to be killed.
func (p *Process) Stop(grace time.Duration) error {
	if err := p.Signal(syscall.SIGTERM); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), grace)
	defer cancel()
	err := p.Wait(ctx)
	if ctx.Err() == nil {
		return err
	}
	return errors.Join(fmt.Errorf("%s did not end within %v of SIGTERM", p.spec.Path, grace), p.Kill())
}

// Kill ends the program with SIGKILL and waits until it is gone.
func (p *Process) Kill() error {
	if err := p.Signal(syscall.SIGKILL); err != nil {
		return err
	}
	<-p.done
	return nil
}

// Log returns what the program has printed so far.
func (p *Process) Log() string {
	text, err := os.ReadFile(p.spec.Log)
	if err != nil {
		return fmt.Sprintf("(log of %s: %v)", p.spec.Path, err)
	}
	return string(text)
}

// LogTail returns the last n lines of the log, for error messages.
func (p *Process) LogTail(n int) string {
	lines := strings.SplitAfter(p.Log(), "\n")
	return strings.Join(lines[max(0, len(lines)-n-1):], "")
}

// Poll calls ready every few milliseconds until it returns true. It gives up with the end of the
// log when the program ends, and when ctx does.
func (p *Process) Poll(ctx context.Context, ready func() bool) error {
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for !ready() {
		select {
		case <-tick.C:
		case <-p.done:
			return fmt.Errorf("%s ended (%v); end of its log:\n%s", p.spec.Path, p.err, p.LogTail(25))
		case <-ctx.Done():
			return fmt.Errorf("%s not ready: %w; end of its log:\n%s", p.spec.Path, context.Cause(ctx), p.LogTail(25))
		}
	}
	return nil
}
