package census

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"idproxy/cmd/idproxy/inventory"
	"idproxy/cmd/idproxy/upstream"
	"idproxy/config"
	"idproxy/idsource/segment"
	"idproxy/rule"
)

// filledTable is a table that has the columns of rules of the source.
type filledTable struct {
	*inventory.Table
	rules   []*rule.Rule
	columns []rule.Column // of the rules, as far as they are known without asking the table
}

// tables connects, and lists what of the server the source may fill, and all tables that other keys of the census can be of. It takes two
// questions, whatever the number of schemas, and one more each where rules name tables that are not shown, and where there are views.
func (a *asker) tables(ctx context.Context) (list []filledTable, err error) {
	connect, cancel := context.WithTimeoutCause(ctx, connectTime, fmt.Errorf("no answer within %v", connectTime))
	defer cancel()
	if err := a.u.DB.PingContext(connect); err != nil {
		return nil, cmp.Or(context.Cause(connect), err)
	}
	a.Listing, err = a.List(ctx, a.census.cfg, a.u, func(r *config.Rule) bool { return r.Source == a.census.source.Name })
	if err != nil {
		return nil, err
	}
	own := a.ofSeries()
	var ofOthers []string
	if len(a.census.others) > 0 {
		ofOthers = own
	}
	if err := a.Show(ctx, own, a.Schemas, ofOthers); err != nil {
		return nil, err
	}
	if err := a.Show(ctx, a.withViews(own), nil, nil); err != nil { // a view may lead to a table of the series
		return nil, err
	}
	list = a.filled()
	return list, a.hidden(ctx, list)
}

// ofSeries returns the schemas that may have a table of the series.
func (a *asker) ofSeries() []string {
	template := a.census.source.Segment.Key
	if a.census.key == "" || !strings.Contains(template, "{schema}") {
		return a.Schemas
	}
	return slices.DeleteFunc(slices.Clone(a.Schemas), func(schema string) bool {
		return !segment.OfTemplate(segment.KeyOf(template, schema, "{table}"))(a.census.key)
	})
}

// withViews returns the schemas with views, but for those that were listed.
func (a *asker) withViews(listed []string) (schemas []string) {
	for _, t := range a.Tables {
		if t.Updatable && !slices.Contains(listed, t.Schema) && !slices.Contains(schemas, t.Schema) {
			schemas = append(schemas, t.Schema)
		}
	}
	return schemas
}

// filled returns the tables with columns that rules of the source fill. The greatest id of a view that no INSERT goes through may take long
// to find.
func (a *asker) filled() (list []filledTable) {
	for _, t := range a.Tables {
		f := filledTable{Table: t}
		for _, c := range t.Columns {
			rules := a.matching(t.TableName, c.Name)
			f.rules = append(f.rules, rules...)
			if rules != nil && c.Integer != nil {
				f.columns = append(f.columns, *c.Integer)
			}
		}
		if f.rules != nil && (!t.View || t.Updatable) {
			list = append(list, f)
		}
	}
	return list
}

// matching returns the rules by which the source fills a column of a table, each once.
func (a *asker) matching(t inventory.TableName, column string) (found []*rule.Rule) {
	for _, set := range a.Listing.Sets {
		for _, r := range set.Match([]byte(t.Schema), []byte(t.Name), a.Fold) {
			same := func(of *rule.Rule) bool { return of.String() == r.String() }
			if r.Source == a.census.source.Name && strings.EqualFold(r.Column, column) && !slices.ContainsFunc(found, same) {
				found = append(found, r)
			}
		}
	}
	return found
}

// hidden refuses tables that exact rules name and that the account may not see. One
// that a wildcard matches is not missed: nothing tells that it is there.
func (a *asker) hidden(ctx context.Context, list []filledTable) error {
	shown := map[inventory.TableName]bool{}
	for _, t := range list {
		shown[a.Key(t.TableName)] = true
	}
	var missing []inventory.TableName
	for _, r := range a.Rules {
		t := inventory.TableName{Schema: r.Schema, Name: r.Table}
		if !r.Wild() && !shown[a.Key(t)] && a.counts(t) {
			missing = append(missing, t)
		}
	}
	if len(missing) == 0 || a.seesAll(ctx) {
		return nil
	}
	for _, t := range missing {
		if _, err := a.u.Table(ctx, t.Schema, t.Name, nil); err != nil && !upstream.IsGone(err) {
			return fmt.Errorf("table %s.%s: %w", t.Schema, t.Name, err)
		}
	}
	return nil
}

// seesAll reports whether nothing is hidden from the account. Where the server does not say so, something may be.
func (a *asker) seesAll(ctx context.Context) bool {
	var grants []string
	err := a.u.Each(ctx, "SHOW GRANTS", func(row []string) { grants = append(grants, row[0]) })
	return err == nil && upstream.ReadRights(upstream.Facts{}, grants...).Everywhere("SELECT")
}
