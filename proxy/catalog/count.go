package catalog

import (
	"errors"
	"strconv"
	"strings"

	"github.com/go-mysql-org/go-mysql/mysql"

	"idproxy/proxy/wire"
	"idproxy/rewriter"
)

// ReadCount reads the answer to what Plan.AppendCount asks. columns is the number of columns
// that get ids, and asked are those of them that the query gives.
func ReadCount(answer *wire.Result, columns int, asked []uint8) (*rewriter.Counted, error) {
	if len(answer.Rows) != 1 || len(answer.Rows[0]) < 2+4*len(asked) {
		return nil, wire.ErrCut
	}
	row, c := answer.Rows[0], &rewriter.Counted{Columns: make([]rewriter.CountedIDs, columns)}
	var err error
	if c.Rows, err = strconv.ParseUint(string(row[0]), 10, 64); err != nil {
		return nil, err
	}
	if c.LastID, err = strconv.ParseUint(string(row[1]), 10, 64); err != nil {
		return nil, err
	}
	for i, k := range asked {
		at, ids := 2+4*i, &c.Columns[k]
		if err := readCounted(ids, row[at:at+4]); err != nil {
			return nil, err
		}
		t, ok := answer.Column(at + 2)
		ids.Float = !ok || t.Type == mysql.MYSQL_TYPE_FLOAT || t.Type == mysql.MYSQL_TYPE_DOUBLE
		ids.Text = (!ok || !wire.IsNumber(t.Type)) && string(row[at+1]) != "0"
	}
	return c, nil
}

// readCounted reads how many rows generate their ids, and the greatest and the
// least of the others.
func readCounted(c *rewriter.CountedIDs, row [][]byte) (err error) {
	if c.Generated, err = strconv.ParseUint(string(row[0]), 10, 64); err != nil {
		return err
	}
	for i, bound := range row[2:] {
		if bound == nil {
			continue
		}
		n, err := strconv.ParseUint(string(bound), 10, 64)
		if err != nil {
			below, err := strconv.ParseInt(string(bound), 10, 64)
			c.BelowZero, c.Unknown = c.BelowZero || err == nil && below < 0, c.Unknown || err != nil
			continue
		}
		if i == 0 {
			c.Greatest = n
		}
	}
	return nil
}

// IsExact asks whether the values of a plan's query, which is that of text, come out of another
// query around it as they are. It is prepared, not run.
func IsExact(s Server, plan *rewriter.Plan, text []byte) (bool, error) {
	made, err := s.Prepare(plan.Query(text))
	if _, refused := errors.AsType[*mysql.MyError](err); refused {
		return true, nil // the count fails likewise
	}
	if err != nil {
		return false, err
	}
	exact := len(made.Shown.Payloads) > 0 && !(plan.Divides() && plan.Marks() > 0) // types may change with those of the parameters
	for i := range made.Shown.Payloads {
		c, ok := made.Shown.Column(i)
		exact = exact && ok && keepsDigits(c) && !(plan.Divides() && !c.Stored && c.Type == mysql.MYSQL_TYPE_NEWDECIMAL)
	}
	return exact, s.Close(made.ID)
}

// keepsDigits reports whether values of a column's type keep all digits that the
// server has computed, but for quotients.
func keepsDigits(c wire.Column) bool {
	const notFixed = 31 // decimals of a floating-point number that has no number of them
	return c.Stored || c.Type != mysql.MYSQL_TYPE_FLOAT && c.Type != mysql.MYSQL_TYPE_DOUBLE || c.Decimals >= notFixed
}

// Engine asks for a table's engine.
func (a *Asker) Engine(t rewriter.Name) (Engine, error) {
	name, _, err := a.perhaps("SELECT ENGINE FROM information_schema.TABLES" + whereTable(t))
	if strings.EqualFold(string(name), "InnoDB") {
		return EngineTransactional, err
	}
	return EngineOther, err
}
