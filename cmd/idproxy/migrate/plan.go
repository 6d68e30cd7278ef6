package migrate

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"time"

	"golang.org/x/sys/unix"
)

// plan is what the file keeps.
type plan struct {
	Format  int      `json:"format"` // of the file
	Switch  string   `json:"switch"`
	Store   string   `json:"store"` // that keeps the switch
	Proxies []string `json:"proxies"`
	Tables  []table  `json:"tables"`
	// Uncounted are columns that rules with the switch are for, and that had no AUTO_INCREMENT when the
	// plan was made.
	Uncounted []string `json:"uncounted,omitempty"`
	Steps     []record `json:"steps"`
}

// planFormat is the format that this version writes and reads.
const planFormat = 1

// table is a table of one or several shards, and its series.
type table struct {
	Schema  string    `json:"schema"`
	Name    string    `json:"table"`
	Column  string    `json:"column"`
	Source  string    `json:"source"`
	Store   string    `json:"store"` // of the series
	Key     string    `json:"key"`   // of the series, in the store
	Start   uint64    `json:"start"`
	Last    uint64    `json:"last"`
	Counter []counter `json:"counters"`
}

// counter is the counter of a table on one shard.
type counter struct {
	Shard      string `json:"shard"`            // the name of a listener
	Server     string `json:"server"`           // its address
	Definition string `json:"definition"`       // of the column, with AUTO_INCREMENT
	Engine     string `json:"engine,omitempty"` // of the table, where it is not InnoDB
	Before     uint64 `json:"before"`           // the next id before it was lifted
	Band       uint64 `json:"band"`             // the next id once it is lifted
	BandEnd    uint64 `json:"band_end"`
	Lifted     uint64 `json:"lifted,omitempty"`  // the next id to which step lift took it
	Reached    uint64 `json:"reached,omitempty"` // the greatest next id that was seen in the band
	// Mingled is how the counter was seen last among ids that proxies may have in memory; nil: never.
	Mingled *mingling `json:"mingled,omitempty"`
}

// mingling is a counter among the ids of its table's series.
type mingling struct {
	Next    uint64    `json:"next"`
	At      time.Time `json:"at"`
	Problem string    `json:"problem,omitempty"` // why the series could not be moved on
}

// unseen is how many ids a counter may give between a look at it and what takes it elsewhere: that waits
// behind transactions that have used the table, and they go on.
const unseen = 1000

// from is where the counter goes on in its band.
func (c *counter) from() uint64 {
	if c.Reached == 0 {
		return c.Band
	}
	return min(c.Reached+unseen, c.BandEnd)
}

// below is where it comes back, below last. It does not go into the series for what is unseen.
func (c *counter) below(t *table) uint64 { return max(c.Before, min(c.Before+unseen, t.Start)) }

// wasAbove reports whether the counter was above last before there was a plan.
func (c *counter) wasAbove(t *table) bool { return c.Before > t.Last }

// States of a step.
const (
	Pending = "pending"
	Done    = "done"
)

// record is how far a step is.
type record struct {
	Step  string    `json:"step"`
	State string    `json:"state"`
	At    time.Time `json:"at,omitzero"`
	By    string    `json:"by,omitempty"` // user and host
}

// how is the end of a statement that alters the table: how InnoDB is to do it. Other engines copy.
func (c *counter) how(innoDB string) string {
	if c.Engine != "" {
		return ""
	}
	return ", " + innoDB
}

// in reports whether a counter is in its band.
func (c *counter) in(next uint64) bool { return c.Band <= next && next <= c.BandEnd }

func (t *table) String() string { return t.Schema + "." + t.Name }

// all returns each counter of the plan, with its table.
func (p *plan) all() iter.Seq2[*table, *counter] {
	return func(yield func(*table, *counter) bool) {
		for i := range p.Tables {
			for j := range p.Tables[i].Counter {
				if !yield(&p.Tables[i], &p.Tables[i].Counter[j]) {
					return
				}
			}
		}
	}
}

// counters is how many there are.
func (p *plan) counters() (n int) {
	for range p.all() {
		n++
	}
	return n
}

// maxPlan bounds what is read of a file.
const maxPlan = 64 << 20

// readPlan reads a plan; nil where there is no such file.
func readPlan(path string) (*plan, error) {
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err == nil && info.Size() > maxPlan {
		return nil, fmt.Errorf("plan %s is larger than %d bytes: this is no plan", path, maxPlan)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("plan: %w", err)
	}
	return parsePlan(path, data)
}

func parsePlan(path string, data []byte) (*plan, error) {
	p := &plan{}
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(p); err != nil {
		return nil, fmt.Errorf("plan %s cannot be read: %w; put back the file as idproxy wrote it", path, err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("plan %s has something behind the plan: put back the file as idproxy wrote it", path)
	}
	names := []string{}
	for _, r := range p.Steps {
		names = append(names, r.Step)
		if r.State != Pending && r.State != Done {
			return nil, fmt.Errorf("plan %s: step %s is %q, neither %s nor %s", path, r.Step, r.State, Pending, Done)
		}
	}
	if p.Format != planFormat || !slices.Equal(names, stepNames()) {
		return nil, fmt.Errorf("plan %s is of another version of idproxy (format %d, steps %q): run it with that one", path, p.Format, names)
	}
	if len(p.Proxies) == 0 {
		return nil, fmt.Errorf("plan %s names no proxy: all proxies have to be in its list", path)
	}
	for t, c := range p.all() {
		if t.Last == 0 || c.Band <= t.Last || c.BandEnd < c.Band {
			return nil, fmt.Errorf("plan %s: the band of %s on shard %s, %d to %d, is not above last, %d: put back the file as idproxy wrote it", path, t, c.Shard, c.Band, c.BandEnd, t.Last)
		}
		if holds := most(c.Definition); c.BandEnd > holds {
			return nil, fmt.Errorf("plan %s: the band of %s on shard %s, %d to %d, is above what column %s holds, %d: put back the file as idproxy wrote it", path, t, c.Shard, c.Band, c.BandEnd, t.Column, holds)
		}
		for i := range t.Counter {
			if o := &t.Counter[i]; o != c && o.Band <= c.BandEnd && c.Band <= o.BandEnd {
				return nil, fmt.Errorf("plan %s: the bands of %s on shards %s and %s meet: put back the file as idproxy wrote it", path, t, c.Shard, o.Shard)
			}
		}
	}
	return p, nil
}

// lock keeps others from running steps of plans in the same folder, until the file is closed: of two
// who turn the switch and move counters at once, one may undo what the other counts on.
func lock(path string) (*os.File, error) {
	dir, err := os.Open(filepath.Dir(path))
	if err != nil {
		return nil, fmt.Errorf("plan: %w", err)
	}
	if err := unix.Flock(int(dir.Fd()), unix.LOCK_EX|unix.LOCK_NB); errors.Is(err, unix.EWOULDBLOCK) { // other errors: there are no locks there
		dir.Close()
		return nil, fmt.Errorf("plan %s: another idproxy migrate runs a step in this folder: wait until it has ended", path)
	}
	return dir, nil
}

// write replaces the file whole: after a crash it has the old or the new content.
func (p *plan) write(path string) error {
	data, err := json.MarshalIndent(p, "", "  ")
	if err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*")
	if err != nil {
		return fmt.Errorf("plan: %w", err)
	}
	mode := fs.FileMode(0o644)
	if info, err := os.Stat(path); err == nil {
		mode = info.Mode().Perm()
	}
	_, err = f.Write(append(data, '\n'))
	err = errors.Join(err, f.Chmod(mode), f.Sync(), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		_ = os.Remove(f.Name())
		return fmt.Errorf("plan: %w", err)
	}
	dir, err := os.Open(filepath.Dir(path))
	if err != nil {
		return fmt.Errorf("plan: %w", err)
	}
	return errors.Join(dir.Sync(), dir.Close())
}
