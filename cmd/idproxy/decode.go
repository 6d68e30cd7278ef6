package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"time"

	"idproxy/cmd/idproxy/ruleset"
	"idproxy/cmd/idproxy/store"
	"idproxy/config"
	"idproxy/idsource/objectid"
	"idproxy/idsource/snowflake"
	"idproxy/idsource/uuid"
)

// decoded is what an id tells.
type decoded struct {
	Source     string     `json:"source"`
	Kind       string     `json:"kind"`
	ID         any        `json:"id"` // a number, or text
	Time       *time.Time `json:"time,omitempty"`
	Datacenter *uint64    `json:"datacenter,omitempty"`
	Worker     *uint64    `json:"worker,omitempty"`
	Sequence   *uint64    `json:"sequence,omitempty"`
	Key        string     `json:"key,omitempty"`
	Next       *uint64    `json:"next,omitempty"`
	Reserved   *bool      `json:"reserved,omitempty"` // false: the source has not come to this id yet
	Server     *uint64    `json:"server,omitempty"`   // of several, from 1
	Process    string     `json:"process,omitempty"`  // of an ObjectId, hexadecimal
	Counter    *uint64    `json:"counter,omitempty"`  // of a UUID or ObjectId
	Random     string     `json:"random,omitempty"`   // of a UUID, hexadecimal
	Genes      []gened    `json:"genes,omitempty"`    // by the rules of the source that have genes
	Error      string     `json:"error,omitempty"`    // why it is not known where the key stands
}

// decodeOptions says which id is taken apart.
type decodeOptions struct {
	source, id string
	json       bool
	out        io.Writer
}

// decode takes an id apart.
func decode(ctx context.Context, cfg *config.Config, o decodeOptions) (err error) {
	src := cfg.Source(o.source)
	if src == nil {
		return fmt.Errorf("%s has no source %q", cfg.Path, o.source)
	}
	d := &decoded{Source: src.Name}
	if ruleset.Kind(src).Wide() {
		err = d.wide(src, o.id)
	} else {
		var id uint64
		if id, err = strconv.ParseUint(o.id, 10, 64); err != nil {
			return fmt.Errorf("%w: %q is not an id", errUsage, o.id)
		}
		d.ID, d.Genes = id, genesOf(cfg, src.Name, id)
		err = d.number(ctx, cfg, src, id)
	}
	if err != nil {
		return err
	}
	if o.json {
		err = printJSON(o.out, d)
	} else {
		d.print(o.out)
	}
	if d.Error != "" {
		return errors.Join(err, errFindings)
	}
	return err
}

// wide takes a UUID or an ObjectId apart.
func (d *decoded) wide(src *config.Source, text string) error {
	if src.ObjectID != nil {
		d.Kind = "objectid"
		id, err := objectid.Parse(text)
		if err != nil {
			return fmt.Errorf("%w: %q is no ObjectId: %w", errUsage, text, err)
		}
		p := id.Parts()
		d.ID, d.Time, d.Process, d.Counter = id.String(), &p.Time, fmt.Sprintf("%010x", p.Process), &p.Counter
		return nil
	}
	d.Kind = "uuidv7"
	id, err := uuid.Parse(text)
	if err != nil {
		return fmt.Errorf("%w: %q is no UUID: %w", errUsage, text, err)
	}
	p, err := id.Parts()
	if err != nil {
		return fmt.Errorf("%s is of another source: %w", id, err)
	}
	d.ID, d.Time, d.Counter, d.Random = id.String(), &p.Time, &p.Counter, fmt.Sprintf("%016x", p.Random)
	return nil
}

func (d *decoded) number(ctx context.Context, cfg *config.Config, src *config.Source, id uint64) error {
	if src.Snowflake != nil {
		d.Kind = "snowflake"
		return d.snowflake(src.Snowflake, id)
	}
	d.Kind, d.Key = "segment", src.Segment.Key
	if st := cfg.Store(src.Segment.Store); st.MySQL != nil && len(st.MySQL.DSNs) > 0 {
		server := id/config.GroupBlock%uint64(len(st.MySQL.DSNs)) + 1
		d.Server = &server
	}
	stores := store.Opened{}
	defer stores.Close()
	s := stand(ctx, stores, cfg, src, false)
	if d.Error = s.Error; s.Next != nil {
		reserved := id < *s.Next
		d.Next, d.Reserved = s.Next, &reserved
	}
	return nil
}

func (d *decoded) snowflake(f *config.Snowflake, id uint64) error {
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

func (d *decoded) print(w io.Writer) {
	fmt.Fprintf(w, "%v is of source %s, a %s\n", d.ID, d.Source, d.Kind)
	if d.Time != nil {
		fmt.Fprintf(w, "time        %s\n", d.Time.Format("2006-01-02T15:04:05.000Z07:00"))
	}
	if d.Datacenter != nil {
		fmt.Fprintf(w, "datacenter  %d\n", *d.Datacenter)
	}
	if d.Worker != nil {
		fmt.Fprintf(w, "worker      %d\nsequence    %d\n", *d.Worker, *d.Sequence)
	}
	for _, g := range d.Genes {
		fmt.Fprintf(w, "gene        %d, of rule %s: %s; above it %d\n", g.Gene, g.Rule, g.Formula, g.Body)
	}
	if d.Server != nil {
		fmt.Fprintf(w, "server      number %d of dsns\n", *d.Server)
	}
	if d.Process != "" {
		fmt.Fprintf(w, "process     %s\n", d.Process)
	}
	if d.Counter != nil {
		fmt.Fprintf(w, "counter     %d\n", *d.Counter)
	}
	if d.Random != "" {
		fmt.Fprintf(w, "random      %s\n", d.Random)
	}
	switch {
	case d.Error != "":
		fmt.Fprintf(w, "key         %s, where it stands is not known: %s\n", d.Key, d.Error)
	case d.Reserved == nil && d.Key != "":
		fmt.Fprintf(w, "key         %s: each table has a series of its own, and the id tells of none\n", d.Key)
	case d.Reserved != nil && *d.Reserved:
		fmt.Fprintf(w, "key         %s, which stands at %d: the id was reserved\n", d.Key, *d.Next)
	case d.Reserved != nil:
		fmt.Fprintf(w, "key         %s, which stands at %d: the id was not reserved yet\n", d.Key, *d.Next)
	}
}
