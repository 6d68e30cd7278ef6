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

// lease is a worker number held by this process. It is used in the store's turn.
type lease struct {
	store *Store
	path  string
	lock  *lock
	fence fence // as stored
	doubt bool  // a write failed: what is stored is not known
}

// Acquire implements idsource.FenceStore.
func (s *Store) Acquire(ctx context.Context, worker uint64, shape idsource.Shape) (idsource.Lease, error) {
	if err := s.enter(ctx); err != nil {
		return nil, err
	}
	defer s.leave()
	path := filepath.Join(s.dir, fmt.Sprintf("worker-%d", worker))
	l := &lease{store: s, path: path}
	var err error
	if l.lock, err = acquire(path + ".lock"); err != nil {
		return nil, fmt.Errorf("file store: %w", err)
	}
	if err := s.readFence(ctx, l, newFence(worker, shape)); err != nil {
		return nil, fmt.Errorf("file store: %w", errors.Join(err, l.lock.release()))
	}
	return l, nil
}

// readFence fills l with what is stored for want.worker; a worker that was
// never used is stored with want's shape.
func (s *Store) readFence(ctx context.Context, l *lease, want fence) error {
	data, err := readFile(l.path)
	unused := errors.Is(err, fs.ErrNotExist)
	if err != nil && !unused {
		return err
	}
	if unused {
		data = nil
	} else if l.fence, err = parseFence(data); err != nil {
		return fmt.Errorf("%s: %w", l.path, err)
	} else if err := l.fence.differs(want); err != nil {
		return fmt.Errorf("%s: %w", l.path, err)
	}
	index, err := acquireSoon(ctx, filepath.Join(s.dir, workersFile+".lock"))
	if err != nil {
		return err
	}
	return errors.Join(s.enlist(l, want, unused), index.release())
}

// enlist stores the fence of an unused worker, then its number in the list of
// used ones: the other order would leave a listed worker without a fence after
// a crash, which looks like a fence that vanished.
func (s *Store) enlist(l *lease, want fence, unused bool) error {
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
		return fmt.Errorf("%s vanished: worker %d was used before; restore the file, or use another worker number", l.path, want.worker)
	}
	if unused {
		if err := replace(l.path, want.render()); err != nil {
			return err
		}
		l.fence = want
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

// Fence implements idsource.Lease.
func (l *lease) Fence() uint64 { return l.fence.until }

// Raise implements idsource.Lease.
func (l *lease) Raise(ctx context.Context, until uint64) error {
	if err := l.store.enter(ctx); err != nil {
		return err
	}
	defer l.store.leave()
	return l.write(until)
}

// Release implements idsource.Lease.
func (l *lease) Release(_ context.Context, until uint64) error {
	l.store.turn <- struct{}{} // nobody holds it for longer than it takes to write a file
	defer l.store.leave()
	var err error
	if until != 0 {
		err = l.write(until)
	}
	return errors.Join(err, l.lock.release())
}

// write stores the fence, unless it is stored.
func (l *lease) write(until uint64) error {
	if err := l.lock.valid(); err != nil {
		return fmt.Errorf("file store: %w", err)
	}
	f := l.fence
	if f.until = until; until == l.fence.until && !l.doubt {
		return nil
	}
	l.doubt = true
	if err := replace(l.path, f.render()); err != nil {
		return fmt.Errorf("file store: %w", err)
	}
	l.fence, l.doubt = f, false
	return nil
}
