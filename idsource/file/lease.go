package file

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"time"

	"idproxy/idsource"
)

// number is a worker number held by this process, for one source or for several. Their
// timestamps may be the same, as two sources are two series of ids; what is stored is a
// fence above all of them. It is used in the store's turn.
type number struct {
	path   string
	lock   *lock
	fence  fence  // as stored
	doubt  bool   // a write failed: what is stored is not known
	first  uint64 // the fence that was found
	left   uint64 // greatest of the fences of sources that gave the number up; 0: none did
	leases []*lease
}

// lease is the part of one source in a number.
type lease struct {
	store  *Store
	number *number
	from   uint64 // what Fence answers
	until  uint64 // the source's own fence
}

// Acquire implements idsource.FenceStore.
func (s *Store) Acquire(ctx context.Context, worker uint64, shape idsource.Shape) (idsource.Lease, error) {
	if err := s.enter(ctx); err != nil {
		return nil, err
	}
	defer s.leave()
	n := s.numbers[worker]
	if n == nil {
		var err error
		if n, err = s.take(ctx, worker, shape); err != nil {
			return nil, fmt.Errorf("file store: %w", err)
		}
	} else if err := n.fence.differs(newFence(worker, shape)); err != nil {
		return nil, fmt.Errorf("file store: %s: %w; sources that share a number need the same layout and epoch, or stores of their own", n.path, err)
	}
	from := max(n.first, n.left)
	l := &lease{store: s, number: n, from: from, until: from}
	n.leases = append(n.leases, l)
	return l, nil
}

// take locks a number that this process does not hold.
func (s *Store) take(ctx context.Context, worker uint64, shape idsource.Shape) (*number, error) {
	path := filepath.Join(s.dir, fmt.Sprintf("worker-%d", worker))
	l, err := acquire(path + ".lock")
	if err != nil {
		return nil, err
	}
	n := &number{path: path, lock: l}
	if err := s.readFence(ctx, n, newFence(worker, shape)); err != nil {
		return nil, errors.Join(err, l.release())
	}
	n.first = n.fence.until
	s.numbers[worker] = n
	return n, nil
}

// readFence fills n with what is stored for want.worker; a worker that was
// never used is stored with want's shape.
func (s *Store) readFence(ctx context.Context, n *number, want fence) error {
	data, err := readFile(n.path)
	unused := errors.Is(err, fs.ErrNotExist)
	if err != nil && !unused {
		return err
	}
	if unused {
		data = nil
	} else if n.fence, err = parseFence(data); err != nil {
		return fmt.Errorf("%s: %w", n.path, err)
	} else if err := n.fence.differs(want); err != nil {
		return fmt.Errorf("%s: %w", n.path, err)
	}
	index, err := acquireSoon(ctx, filepath.Join(s.dir, workersFile+".lock"))
	if err != nil {
		return err
	}
	return errors.Join(s.enlist(n, want, unused), index.release())
}

// enlist stores the fence of an unused worker, then its number in the list of
// used ones: the other order would leave a listed worker without a fence after
// a crash, which looks like a fence that vanished.
func (s *Store) enlist(n *number, want fence, unused bool) error {
	path := filepath.Join(s.dir, workersFile)
	data, err := readFile(path)
	if err != nil {
		return err
	}
	workers, err := parseWorkers(data)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	at, listed := slices.BinarySearch(workers, want.worker)
	if unused && listed {
		return fmt.Errorf("%s vanished: worker %d was used before; restore the file, or use another worker number", n.path, want.worker)
	}
	if unused {
		if err := replace(n.path, want.render()); err != nil {
			return err
		}
		n.fence = want
	}
	if listed {
		return nil
	}
	return replace(path, renderWorkers(slices.Insert(workers, at, want.worker)))
}

// acquireSoon takes a lock that is only held for moments.
func acquireSoon(ctx context.Context, path string) (*lock, error) {
	const tries, pause = 300, 10 * time.Millisecond // each holder syncs three files, and many may start at once
	for try := 1; ; try++ {
		l, err := acquire(path)
		if err == nil || try == tries {
			return l, err
		}
		select {
		case <-ctx.Done():
			return nil, err
		case <-time.After(pause):
		}
	}
}

// differs compares what ids are composed of. Another shape under the same
// worker number could compose the same ids.
func (f fence) differs(want fence) error {
	if f.worker != want.worker {
		return fmt.Errorf("the file is of worker %d", f.worker)
	}
	if f.layout == want.layout && f.epoch == want.epoch {
		return nil
	}
	return fmt.Errorf("%w: worker %d was used with layout %s and epoch %s, the configuration says layout %s and epoch %s",
		idsource.BadConfig, f.worker, f.layout, f.epoch, want.layout, want.epoch)
}

// Fence implements idsource.Lease. What other sources of the process may use says nothing
// of the source's own ids.
func (l *lease) Fence() uint64 { return l.from }

// Raise implements idsource.Lease.
func (l *lease) Raise(ctx context.Context, until uint64) error {
	if err := l.store.enter(ctx); err != nil {
		return err
	}
	defer l.store.leave()
	if err := l.number.lock.valid(); err != nil {
		return fmt.Errorf("file store: %w", err)
	}
	before := l.until
	l.until = until
	if err := l.number.write(); err != nil {
		l.until = before
		return fmt.Errorf("file store: %w", err)
	}
	return nil
}

// Release implements idsource.Lease. The last source of the process that releases the
// number unlocks it.
func (l *lease) Release(_ context.Context, until uint64) error {
	l.store.turn <- struct{}{} // nobody holds it for longer than it takes to write a file
	defer l.store.leave()
	n := l.number
	n.leases = slices.DeleteFunc(n.leases, func(other *lease) bool { return other == l })
	if until == 0 {
		until = l.until
	}
	n.left = max(n.left, until)
	var err error
	if n.doubt || n.highest() != n.fence.until {
		if err = n.lock.valid(); err == nil {
			err = n.write()
		}
		if err != nil {
			err = fmt.Errorf("file store: %w", err)
		}
	}
	if len(n.leases) > 0 {
		return err
	}
	delete(l.store.numbers, n.fence.worker)
	return errors.Join(err, n.lock.release())
}

// highest is the fence that all sources need.
func (n *number) highest() uint64 {
	until := n.left
	for _, l := range n.leases {
		until = max(until, l.until)
	}
	return until
}

// write stores the fence that all sources need, unless it is stored.
func (n *number) write() error {
	f := n.fence
	if f.until = n.highest(); f.until == n.fence.until && !n.doubt {
		return nil
	}
	n.doubt = true
	if err := replace(n.path, f.render()); err != nil {
		return err
	}
	n.fence, n.doubt = f, false
	return nil
}
