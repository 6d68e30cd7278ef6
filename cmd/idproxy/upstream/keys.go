package upstream

import (
	"context"
	"database/sql"
	"errors"
	"slices"
	"strings"

	"idproxy/rewriter"
	"idproxy/rule"
)

// describeKeys learns of the columns that genes come from what a result does not
// tell.
func (u *Server) describeKeys(ctx context.Context, t *rule.Table, name rewriter.Name, rules []*rule.Rule) error {
	const query = "SELECT COLUMN_NAME, LOWER(DATA_TYPE), COALESCE(CHARACTER_MAXIMUM_LENGTH, 0), COALESCE(CHARACTER_SET_NAME, 'binary'), " +
		"LOWER(COLUMN_TYPE) LIKE '%unsigned%', LOWER(EXTRA) LIKE '%auto_increment%' " +
		"FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = ? AND TABLE_NAME = ? AND COLUMN_NAME = ?"
	for _, r := range rules {
		if r.Gene == nil {
			continue
		}
		var c rule.Column
		var kind string
		var unsigned bool
		err := u.DB.QueryRowContext(ctx, query, name.Schema, name.Table, r.Gene.Column).
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
		c.Max = Widest(kind, unsigned)
		t.SetKey(c)
	}
	return nil
}
