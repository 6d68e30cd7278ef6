package admin

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"idproxy/cmd/idproxy/ruleset"
	"idproxy/cmd/idproxy/store"
	"idproxy/config"
	"idproxy/idsource"
	"idproxy/idsource/objectid"
	"idproxy/idsource/snowflake"
	"idproxy/idsource/uuid"
)

// Decoded is what an id tells.
type Decoded struct {
	Source     string     `json:"source"`
	Kind       string     `json:"kind"`
	ID         any        `json:"id"` // a number, or text
	Time       *time.Time `json:"time,omitempty"`
	Datacenter *uint64    `json:"datacenter,omitempty"`
	Worker     *uint64    `json:"worker,omitempty"`
	Sequence   *uint64    `json:"sequence,omitempty"`
	Number     *uint64    `json:"number,omitempty"` // of a scrambled id, in its series
	Key        string     `json:"key,omitempty"`
	Next       *uint64    `json:"next,omitempty"`
	Reserved   *bool      `json:"reserved,omitempty"` // false: the source has not come to this id yet
	Server     *uint64    `json:"server,omitempty"`   // of several, from 1
	TakenBy    string     `json:"taken_by,omitempty"` // who reserved it, as the store's history has it
	TakenAt    *time.Time `json:"taken_at,omitempty"` // when
	Process    string     `json:"process,omitempty"`  // of an ObjectId, hexadecimal
	Counter    *uint64    `json:"counter,omitempty"`  // of a UUID or ObjectId
	Random     string     `json:"random,omitempty"`   // of a UUID, hexadecimal
	Genes      []Gened    `json:"genes,omitempty"`    // by the rules of the source that have genes
	Error      string     `json:"error,omitempty"`    // why it is not known where the key stands
}

// Decode takes an id of a source apart, and asks where the key of a segment stands.
func Decode(ctx context.Context, cfg *config.Config, source, id string) (*Decoded, error) {
	src, err := sourceOf(cfg, source)
	if err != nil {
		return nil, err
	}
	d, err := Apart(cfg, src, id)
	if d.Number != nil && err == nil {
		d.stand(ctx, cfg, src, *d.Number)
	} else if n, ok := d.ID.(uint64); ok && err == nil && src.Segment != nil {
		d.stand(ctx, cfg, src, n)
	}
	return d, err
}

// Apart takes an id of a source apart, as far as that needs no store.
func Apart(cfg *config.Config, src *config.Source, id string) (*Decoded, error) {
	d := &Decoded{Source: src.Name}
	if ruleset.Kind(src).Wide() {
		return d, d.wide(src, id)
	}
	n, err := strconv.ParseUint(id, 10, 64)
	if err != nil {
		return d, fmt.Errorf("%w: %q is not an id", ErrUsage, id)
	}
	d.ID, d.Genes = n, genesOf(cfg, src.Name, n)
	if src.Snowflake != nil {
		d.Kind = "snowflake"
		return d, d.snowflake(src.Snowflake, n)
	}
	d.Kind, d.Key = "segment", store.KeyOf(src.Segment)
	if s, err := store.Scramble(src.Segment); s != nil || err != nil {
		if err != nil {
			return d, err
		}
		number, ok := s.Number(n)
		if !ok {
			return d, fmt.Errorf("%d is no id of source %s: its ids lie from %d to %d", n, src.Name, s.First(), 2*(s.First()-1)+1)
		}
		d.Number, n = &number, number
	}
	if st := cfg.Store(src.Segment.Store); st.MySQL != nil && len(st.MySQL.DSNs) > 0 {
		server := n/config.GroupBlock%uint64(len(st.MySQL.DSNs)) + 1
		d.Server = &server
	}
	return d, nil
}

// wide takes a UUID or an ObjectId apart.
func (d *Decoded) wide(src *config.Source, text string) error {
	if src.ObjectID != nil {
		d.Kind = "objectid"
		id, err := objectid.Parse(text)
		if err != nil {
			return fmt.Errorf("%w: %q is no ObjectId: %w", ErrUsage, text, err)
		}
		p := id.Parts()
		d.ID, d.Time, d.Process, d.Counter = id.String(), &p.Time, fmt.Sprintf("%010x", p.Process), &p.Counter
		return nil
	}
	d.Kind = "uuidv7"
	id, err := uuid.Parse(text)
	if err != nil {
		return fmt.Errorf("%w: %q is no UUID: %w", ErrUsage, text, err)
	}
	p, err := id.Parts()
	if err != nil {
		return fmt.Errorf("%s is of another source: %w", id, err)
	}
	d.ID, d.Time, d.Counter, d.Random = id.String(), &p.Time, &p.Counter, fmt.Sprintf("%016x", p.Random)
	return nil
}

// stand asks where the key of a segment stands.
func (d *Decoded) stand(ctx context.Context, cfg *config.Config, src *config.Source, id uint64) {
	stores := store.Opened{}
	defer stores.Close()
	s := stand(ctx, stores, cfg, src, false)
	if d.Error = s.Error; s.Next != nil {
		reserved := id < *s.Next
		d.Next, d.Reserved = s.Next, &reserved
	}
	st, known := stores[src.Segment.Store]
	historian, ok := st.Segments.(idsource.Historian)
	if !known || !ok || d.Reserved == nil || !*d.Reserved {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, store.AskTime)
	defer cancel()
	all, _ := historian.History(ctx, store.KeyOf(src.Segment), id, overlapping) // where it cannot be read, it is not told
	if one, ok := idsource.Holding(all, id); ok {
		d.TakenBy, d.TakenAt = one.By, &one.At
	}
}

func (d *Decoded) snowflake(f *config.Snowflake, id uint64) error {
	l, err := snowflake.ParseLayout(f.Layout)
	if err != nil {
		return err
	}
	if id >= 1<<63 {
		return fmt.Errorf("%d has more than 63 bits: it is no snowflake id", id)
	}
	p := l.Decode(id)
	at := time.UnixMilli(f.Epoch.UnixMilli() + int64(p.Time)*l.Unit.Milliseconds()).UTC()
	worker := p.Worker & (1<<l.Worker - 1)
	d.Time, d.Worker, d.Sequence = &at, &worker, &p.Sequence
	if l.Datacenter > 0 {
		datacenter := p.Worker >> l.Worker
		d.Datacenter = &datacenter
	}
	return nil
}

// Gened is an id as a rule with a gene makes it.
type Gened struct {
	Rule    string `json:"rule"`
	Formula string `json:"formula"` // what ids and keys of the rule have in common
	Gene    uint64 `json:"gene"`
	Body    uint64 `json:"body"` // the bits above
}

// genesOf takes the genes out of an id, by each rule of its source that has one.
func genesOf(cfg *config.Config, source string, id uint64) (genes []Gened) {
	for i := range cfg.Rules {
		r := &cfg.Rules[i]
		if g := ruleset.Gene(r); g != nil && r.Source == source {
			formula := fmt.Sprintf("%s %% %d = %s", r.Column, g.Size(), g)
			genes = append(genes, Gened{Rule: r.String(), Formula: formula, Gene: id % g.Size(), Body: id / g.Size()})
		}
	}
	return genes
}
