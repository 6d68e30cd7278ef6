package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"

	"idproxy/config"
	"idproxy/rewriter"
)

// geneOf returns the gene of a rule, nil when it has none.
func geneOf(r *config.Rule) *rewriter.Gene {
	if r.Gene == nil {
		return nil
	}
	return &rewriter.Gene{Column: r.Gene.Column, Bits: int(r.Gene.Bits), CRC32: r.Gene.By == config.GeneCRC32}
}

// gened is an id as a rule with a gene makes it.
type gened struct {
	Rule    string `json:"rule"`
	Formula string `json:"formula"` // what ids and keys of the rule have in common
	Gene    uint64 `json:"gene"`
	Body    uint64 `json:"body"` // the bits above
}

// genesOf takes the genes out of an id, by each rule of its source that has one.
func genesOf(cfg *config.Config, source string, id uint64) (genes []gened) {
	for i := range cfg.Rules {
		r := &cfg.Rules[i]
		if g := geneOf(r); g != nil && r.Source == source {
			formula := fmt.Sprintf("%s %% %d = %s", r.Column, g.Size(), g)
			genes = append(genes, gened{Rule: r.String(), Formula: formula, Gene: id % g.Size(), Body: id / g.Size()})
		}
	}
	return genes
}

// describeKeys learns of the columns that genes come from what a result does not
// tell.
func (u *upstream) describeKeys(ctx context.Context, t *rewriter.Table, name rewriter.Name, rules []*rewriter.Rule) error {
	const query = "SELECT COLUMN_NAME, LOWER(DATA_TYPE), COALESCE(CHARACTER_MAXIMUM_LENGTH, 0), COALESCE(CHARACTER_SET_NAME, 'binary'), " +
		"LOWER(COLUMN_TYPE) LIKE '%unsigned%', LOWER(EXTRA) LIKE '%auto_increment%' " +
		"FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = ? AND TABLE_NAME = ? AND COLUMN_NAME = ?"
	for _, rule := range rules {
		if rule.Gene == nil {
			continue
		}
		var c rewriter.Column
		var kind string
		var unsigned bool
		err := u.db.QueryRowContext(ctx, query, name.Schema, name.Table, rule.Gene.Column).
			Scan(&c.Name, &kind, &c.Length, &c.Charset, &unsigned, &c.AutoIncrement)
		if errors.Is(err, sql.ErrNoRows) {
			continue
		}
		if err != nil {
			return err
		}
		c.Bytes, c.Padded, c.Type = c.Charset == "binary", kind == "char" || kind == "binary", strings.ToUpper(kind)
		if c.Text = slices.Contains([]string{"char", "varchar", "binary", "varbinary"}, kind); !c.Text {
			c.Length = 0
		}
		c.Max = widest(kind, unsigned)
		t.SetKey(c)
	}
	return nil
}

// keyProblem says why the ids of a rule cannot have its gene, and "" when they can.
func keyProblem(r *config.Rule, table *rewriter.Table) string {
	g := geneOf(r)
	if g == nil {
		return ""
	}
	key, _, ok := table.Column(g.Column)
	if !ok {
		return "gene: the table has no column " + g.Column
	}
	if why := g.Fits(key); why != "" {
		return "gene: column " + g.Column + " " + why
	}
	return ""
}
