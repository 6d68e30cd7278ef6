package lease

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"os"
	"time"

	"idproxy/idsource"
	"idproxy/inside"
)

// Config describes a Keeper.
type Config struct {
	Pool   string               // required: name of the pool, which is that of the source
	Store  Store                // required; stays the caller's
	Rules  Rules                // required: from Derive
	Dir    string               // folder of the file by which a process that was restarted takes its number again; default: no file
	Place  string               // names the store; a number is taken up again only from the same one
	Size   uint64               // the pool is made with so many numbers, and grows to have them; default: an administrator makes it
	Beside []string             // pools whose numbers may make the same ids
	Once   bool                 // the store is one of disposable numbers: no file, no spare number, and without the store it goes on
	Label  string               // who we are, for people; default host and process number
	Clock  func() time.Duration // runs on while the machine sleeps, and nobody can set it; default: the host's since it started
	Logger *slog.Logger         // default: discard
}

// Keeper holds a worker number, and where many are free a spare one, by the
// rules of the pool. It is an idsource.WorkerPool.
type Keeper struct{ cfg Config }

var _ idsource.WorkerPool = (*Keeper)(nil)

// The pace of those who find no number. Waits with a known end do not count as tries.
const (
	queueTries   = 3 // before the silent are looked at
	queuePause   = time.Second
	reclaimPause = 5 * time.Second
	leastPause   = 50 * time.Millisecond
	fillTime     = 10 * time.Second // for making numbers
	wholePause   = time.Minute      // a pool that lacked none is not looked at again
)

// New checks the configuration and does nothing yet.
func New(c Config) (*Keeper, error) {
	if c.Pool == "" || c.Store == nil || c.Rules.Heartbeat == 0 {
		return nil, errors.New("a keeper of a worker number needs a pool, a store and rules")
	}
	if c.Label == "" {
		host, err := os.Hostname()
		if err != nil {
			host = "unknown"
		}
		c.Label = fmt.Sprintf("%s:%d", host, os.Getpid())
	}
	if c.Clock == nil {
		c.Clock = SinceBoot
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return &Keeper{cfg: c}, nil
}

func newToken() string {
	b := make([]byte, 16)
	_, _ = rand.Read(b) // it never fails
	return hex.EncodeToString(b)
}

// Keep implements idsource.WorkerPool.
func (k *Keeper) Keep(ctx context.Context, t idsource.Tenant) {
	shape, numbers := t.Shape()
	r := &keeping{Keeper: k, tenant: t, shape: ShapeText(shape.Layout, shape.Epoch), numbers: numbers}
	if k.cfg.Once {
		r.shape = DisposableShape(r.shape)
	} else {
		r.file = openFile(k.cfg.Dir, k.cfg.Pool, k.cfg.Logger)
		defer r.file.close()
		r.resume()
	}
	for ctx.Err() == nil {
		pause := time.NewTimer(r.step(ctx))
		select {
		case <-ctx.Done():
		case <-pause.C:
		case why := <-t.Swap():
			r.swap(ctx, why)
		}
		pause.Stop()
	}
	r.end()
}

// keeping is one call of Keep. Its goroutine alone uses it.
type keeping struct {
	*Keeper
	tenant  idsource.Tenant
	shape   string
	numbers uint64
	file    *file

	main, spare *Hold
	granted     bool // the tenant has main
	until       int64
	seen        clock // the store's, as last read
	tries       int
	pause       time.Duration // after an error
	away        bool          // the last renewal of main failed
	nextSpare   time.Duration // when to look for a spare again
	nextFill    time.Duration // when to look again whether the pool lacks numbers
	waiting     bool          // it was logged
	was         bool          // it has had a number of the pool
}

// clock is a reading of the store's clock.
type clock struct {
	now  int64
	at   time.Duration // on the monotonic clock
	late time.Duration // now may be too low by this
}

// now is the store's clock, or a little less.
func (r *keeping) now() int64 { return r.seen.now + (r.cfg.Clock() - r.seen.at).Milliseconds() }

// read takes a reading from a reply to what was sent.
func (r *keeping) read(reply Reply, sent time.Duration) {
	if reply.Now == 0 {
		return
	}
	at := r.cfg.Clock()
	r.seen = clock{now: reply.Now, at: at, late: at - sent}
}

func (r *keeping) ask(h *Hold, last int64) Ask {
	return Ask{
		Pool: r.cfg.Pool, Shape: r.shape, Worker: h.Worker,
		// One who took the number up again does not know what was used below its start.
		Use:   Use{Token: h.Token, Last: max(last, h.Start-1), Beat: h.Beat},
		Label: r.cfg.Label, Numbers: r.numbers, Rules: r.cfg.Rules,
	}
}

// step does what is due and returns when to come back.
func (r *keeping) step(ctx context.Context) time.Duration {
	if r.spare != nil && !r.cfg.Rules.Reaches(*r.spare, r.now()) { // the clock went back: main could not be changed for it
		_ = r.release(ctx, r.spare, 0) // it was logged
		r.spare, r.nextSpare = nil, 0
	}
	if r.main == nil {
		r.main, r.spare = r.spare, nil
	}
	if r.main == nil {
		return r.take(ctx)
	}
	pause, ok := r.renew(ctx)
	if ok && !r.cfg.Once {
		r.keepSpare(ctx)
	}
	return pause
}

// take asks for a number.
func (r *keeping) take(ctx context.Context) time.Duration {
	h := Hold{Token: newToken()}
	a := r.ask(&h, 0)
	a.Reclaim = r.tries >= queueTries
	sent := r.cfg.Clock()
	reply, err := r.cfg.Store.Take(ctx, a)
	if err != nil {
		return r.failed(fmt.Errorf("take a worker number from pool %s: %w", r.cfg.Pool, err))
	}
	r.pause = 0
	r.read(reply, sent)
	slow := min(reclaimPause, ms(r.cfg.Rules.Reclaim)/4)
	switch reply.Verdict {
	case Granted:
		if reply.Worker >= r.numbers {
			// Never used, and kept from those who would.
			return r.failed(fmt.Errorf("%w: pool %s gave number %d, and the layout has room for %d", idsource.BadConfig, r.cfg.Pool, reply.Worker, r.numbers))
		}
		h = r.took(h.Token, reply, sent)
		r.main, r.tries, r.waiting, r.was = &h, 0, false, true
		r.cfg.Logger.Info("worker number taken", "source", r.cfg.Pool, "worker", h.Worker)
		return r.begin(reply)
	case Wait:
		if !r.waiting {
			r.cfg.Logger.Info("waiting for a worker number", "source", r.cfg.Pool, "duration", reply.Wait, "reason", reply.Why)
			r.waiting = true
		}
		r.later(reply.Wait, fmt.Errorf("no worker number of pool %s for another %v: %s", r.cfg.Pool, reply.Wait, reply.Why))
		return max(leastPause/5, min(reply.Wait, slow))
	case NoPool:
		if r.cfg.Size > 0 {
			if !r.was { // else it is made again
				if err := r.alone(ctx); err != nil {
					r.later(unknown, fmt.Errorf("pool %s: %s: %w", r.cfg.Pool, reply.Verdict, err))
					return slow
				}
			}
			pause, _ := r.fill(ctx)
			return pause
		}
		r.later(unknown, fmt.Errorf("pool %s: %s: make it with idproxy worker add", r.cfg.Pool, reply.Verdict))
		return slow
	case OtherShape:
		r.tenant.Report(fmt.Errorf("%w: pool %s is for ids of %s, the configuration says %s", idsource.BadConfig, r.cfg.Pool, reply.Why, r.shape))
		return slow
	case UsedUp:
		r.tenant.Report(fmt.Errorf("%w: pool %s: %s: choose a layout with more bits for workers", idsource.BadConfig, r.cfg.Pool, reply.Verdict))
		return slow
	}
	if r.cfg.Size > 0 && r.cfg.Clock() >= r.nextFill {
		if pause, more := r.fill(ctx); more {
			return pause
		}
	}
	r.tries++
	none := reply.Verdict.String()
	if reply.Why != "" {
		none = reply.Why
	}
	err = fmt.Errorf("pool %s: %s: more can be added with idproxy worker add", r.cfg.Pool, none)
	if r.tries <= queueTries {
		r.tenant.Report(err)
		return min(queuePause, slow)
	}
	r.later(unknown, err)
	return slow
}

// alone is [Alone] for the pool.
func (r *keeping) alone(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, fillTime)
	defer cancel()
	return Alone(ctx, r.cfg.Store, r.shape, r.cfg.Rules, r.cfg.Beside)
}

// fill makes the pool, or adds the numbers that it lacks; more: there are more now, or it is not
// known. A pool that is not there is never taken for a new one: it rests like one that was lost.
func (r *keeping) fill(ctx context.Context) (pause time.Duration, more bool) {
	ctx, cancel := context.WithTimeout(ctx, fillTime)
	defer cancel()
	added, err := r.cfg.Store.Add(ctx, Fill{Pool: r.cfg.Pool, Shape: r.shape, Numbers: r.cfg.Size, Grow: true, Rules: r.cfg.Rules})
	if err != nil {
		return r.failed(fmt.Errorf("make worker numbers in pool %s: %w", r.cfg.Pool, err)), true
	}
	if added > 0 {
		r.cfg.Logger.Warn("worker numbers made", "source", r.cfg.Pool, "count", added)
	} else {
		r.nextFill = r.cfg.Clock() + wholePause
	}
	return leastPause, added > 0
}

// record is the number as a reply has it.
func record(token string, reply Reply) Record {
	return Record{Token: token, Start: reply.Start, Fence: reply.Fence, Beat: reply.Beat}
}

// took is the hold that a reply to what was sent gives.
func (r *keeping) took(token string, reply Reply, sent time.Duration) Hold {
	h := r.cfg.Rules.Took(reply.Worker, record(token, reply), sent, r.cfg.Clock())
	h.Start = max(h.Start, r.tenant.Unused(h.Worker)) // so the next holder begins above it, too, also where this one gives no id
	return h
}

// again is took for a hold whose lease has ended.
func (r *keeping) again(ended Hold, reply Reply, sent time.Duration) Hold {
	return r.cfg.Rules.Again(ended, record(ended.Token, reply), sent, r.cfg.Clock())
}

// begin is what follows when main was taken, or begins anew.
func (r *keeping) begin(reply Reply) time.Duration {
	if r.main.Active {
		return r.grant(reply.Fence)
	}
	return r.untilActive(reply)
}

// unknown is a time that nobody waits for.
const unknown = time.Duration(math.MaxInt64)

// later reports an error that stays for a while, so that no INSERT waits in vain.
func (r *keeping) later(d time.Duration, err error) {
	r.tenant.Report(&idsource.LaterError{For: d, Err: err})
}

// failed reports an error of the store and returns when to try again.
func (r *keeping) failed(err error) time.Duration {
	r.tenant.Report(inside.Mark(err))
	r.pause = min(max(2*r.pause, leastPause), time.Second, ms(r.cfg.Rules.Heartbeat))
	return r.pause
}

// untilActive reports for how long main rests yet, and returns when to renew it.
func (r *keeping) untilActive(reply Reply) time.Duration {
	wait := max(0, r.cfg.Rules.Activates(*r.main)-r.cfg.Clock())
	if r.main.waits {
		wait = max(wait, reply.Rest)
	}
	r.later(wait, fmt.Errorf("worker number %d of pool %s rests for another %v before its first id", r.main.Worker, r.cfg.Pool, wait.Round(time.Millisecond)))
	return min(ms(r.cfg.Rules.Heartbeat), wait)
}

// renew moves the fence of main on.
func (r *keeping) renew(ctx context.Context) (pause time.Duration, ok bool) {
	sent := r.cfg.Clock()
	if !r.cfg.Once && !r.cfg.Rules.MayRenew(*r.main, sent) {
		r.endLease()
	}
	reply, err := r.cfg.Store.Renew(ctx, r.ask(r.main, r.tenant.Last()))
	r.away = err != nil && ctx.Err() == nil
	if err != nil {
		if r.cfg.Once { // nobody else is ever given the number
			r.main.Fence = max(r.main.Fence, max(r.now(), min(r.tenant.Last(), r.now()+r.cfg.Rules.Ahead))+r.cfg.Rules.Lead)
		}
		if ctx.Err() == nil && r.main.Active {
			err = errors.Join(err, r.allow(r.main.Fence)) // what is stored already can be used
		}
		return r.failed(fmt.Errorf("renew worker number %d: %w", r.main.Worker, err)), false
	}
	r.pause = 0
	r.read(reply, sent)
	switch {
	case reply.Verdict == Anew:
		r.endLease() // where only the store's clock says so
		*r.main = r.again(*r.main, reply, sent)
		return r.begin(reply), false
	case reply.Verdict != Granted:
		return r.lose(ctx, reply.Verdict), false
	}
	*r.main = r.cfg.Rules.Renewed(*r.main, record(r.main.Token, reply), reply.Rest.Milliseconds(), sent)
	if !r.main.Active {
		return r.untilActive(reply), false
	}
	return r.grant(reply.Fence), true
}

// endLease takes main from the tenant and keeps it to ask for it again: when the store is back the
// lease may begin anew.
func (r *keeping) endLease() {
	h := *r.main
	var last int64
	if r.granted {
		r.cfg.Logger.Warn("lease of the worker number ended, it is asked for again", "source", r.cfg.Pool, "worker", h.Worker, "reason", Late)
		var err error
		if last, err = r.drop(fmt.Errorf("worker number %d: %s", h.Worker, Late)); err != nil {
			// Nobody takes a number up from a file after the end of its lease.
			r.cfg.Logger.Warn("file of the worker number", "source", r.cfg.Pool, "error.message", err)
		}
	}
	h = r.cfg.Rules.Ended(h, last, r.cfg.Clock())
	r.main = &h
}

// lose drops main. One that is only late is given back: nobody else has to wait
// for it.
func (r *keeping) lose(ctx context.Context, why Verdict) time.Duration {
	old := *r.main
	r.cfg.Logger.Warn("worker number lost, another one is taken", "source", r.cfg.Pool, "worker", old.Worker, "reason", why)
	last, err := r.drop(fmt.Errorf("worker number %d was lost: %s", old.Worker, why))
	if err != nil {
		r.cfg.Logger.Warn("file of the worker number", "source", r.cfg.Pool, "error.message", err)
	} else if why == Late {
		_ = r.release(ctx, &old, last) // it was logged
	}
	return 0
}

// drop takes main from the tenant and returns the last timestamp used. After an
// error the number must not be given back.
func (r *keeping) drop(why error) (last int64, err error) {
	if r.granted {
		last = r.tenant.Revoke()
	}
	r.main, r.granted, r.until = nil, false, 0
	r.tenant.Report(why)
	return last, r.file.clear()
}

// grant lets the tenant use timestamps below fence. With a file it is let up to
// a nearer bound, which the file has first: a process that is started again
// goes on there.
func (r *keeping) grant(fence int64) time.Duration {
	if err := r.allow(fence); err != nil {
		return r.failed(err)
	}
	r.tenant.Report(nil)
	return ms(r.cfg.Rules.Heartbeat)
}

// allow is grant for one whose renewal failed.
func (r *keeping) allow(fence int64) error {
	until := fence
	if r.file != nil {
		near := r.now() + r.cfg.Rules.Ahead + 2*r.cfg.Rules.Heartbeat
		// Not below the start, which may lie ahead of a clock that went back: the
		// process that is started again would begin below it.
		until = max(r.until, r.main.Start, min(fence, near))
		if err := r.file.save(r.saved(until)); err != nil {
			return fmt.Errorf("worker number %d: %w", r.main.Worker, err)
		}
	}
	r.until = until
	r.tenant.Grant(idsource.Term{
		Worker: r.main.Worker, Start: r.main.Start, Fence: until,
		Now: r.now(), Late: r.seen.late, Fresh: !r.granted,
	})
	r.granted = true
	return nil
}

// keepSpare takes or renews a second number, so that a swap needs no wait.
func (r *keeping) keepSpare(ctx context.Context) {
	sent := r.cfg.Clock()
	if r.spare == nil {
		if sent < r.nextSpare {
			return
		}
		r.nextSpare = sent + 5*ms(r.cfg.Rules.Heartbeat)
		h := Hold{Token: newToken()}
		a := r.ask(&h, 0)
		a.Spare = true
		reply, err := r.cfg.Store.Take(ctx, a)
		if err == nil && reply.Verdict == Granted && reply.Worker < r.numbers {
			h = r.took(h.Token, reply, sent)
			r.spare = &h
		}
		return
	}
	if !r.cfg.Rules.MayRenew(*r.spare, sent) { // nothing was used with it
		*r.spare = r.cfg.Rules.Ended(*r.spare, 0, sent)
	}
	reply, err := r.cfg.Store.Renew(ctx, r.ask(r.spare, 0))
	switch {
	case err != nil: // main's renewal will tell
	case reply.Verdict == Anew:
		*r.spare = r.again(*r.spare, reply, sent)
	case reply.Verdict != Granted:
		r.spare = nil
	default:
		*r.spare = r.cfg.Rules.Renewed(*r.spare, record(r.spare.Token, reply), reply.Rest.Milliseconds(), sent)
	}
}

// swap changes to another number, and gives the old one back. Where the spare one
// is of no use, the next step takes one.
func (r *keeping) swap(ctx context.Context, why string) {
	if r.main == nil || !r.granted {
		return
	}
	old := *r.main
	last, err := r.drop(fmt.Errorf("worker number %d is being swapped: %s", old.Worker, why))
	r.cfg.Logger.Info("worker number swapped", "source", r.cfg.Pool, "worker", old.Worker, "reason", why)
	if r.spare != nil && r.spare.Active && r.cfg.Rules.MayRenew(*r.spare, r.cfg.Clock()) && r.cfg.Rules.Reaches(*r.spare, r.now()) {
		r.main, r.spare, r.nextSpare = r.spare, nil, 0
		r.grant(r.main.Fence)
	}
	if err != nil {
		r.cfg.Logger.Warn("worker number not given back", "source", r.cfg.Pool, "worker", old.Worker, "error.message", err)
		return
	}
	_ = r.release(ctx, &old, last) // it was logged
}

func (r *keeping) release(ctx context.Context, h *Hold, last int64) error {
	_, err := r.cfg.Store.Release(ctx, r.ask(h, last))
	if err != nil {
		r.cfg.Logger.Warn("worker number not given back, it becomes free by itself", "source", r.cfg.Pool, "worker", h.Worker, "error.message", err)
	}
	return err
}

// releaseAtEnd is release for a process that must not wait for a store that is away.
func (r *keeping) releaseAtEnd(h *Hold, last int64) error {
	ctx, cancel := context.WithTimeout(context.Background(), stepTime)
	defer cancel()
	return r.release(ctx, h, last)
}

// end gives the numbers back. When the store certainly did not hear of it, the number stays in the
// file, with the bound of what was used. When the store may have heard of it, or may yet, the
// number can go to another process with a fence that ends at what was used here: nobody may take
// it up from the file.
func (r *keeping) end() {
	if r.spare != nil {
		_ = r.releaseAtEnd(r.spare, 0) // it was logged
	}
	if r.main == nil {
		return
	}
	old, granted := *r.main, r.granted
	last, err := r.drop(nil)
	if err == nil && (r.away || errors.Is(r.releaseAtEnd(&old, last), ErrUnsent)) && granted {
		r.main = &old
		err = r.file.save(r.saved(max(last+1, old.Start)))
	}
	if err != nil {
		r.cfg.Logger.Warn("file of the worker number", "source", r.cfg.Pool, "error.message", err)
	}
}
