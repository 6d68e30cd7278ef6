package decide

import (
	"errors"

	"idproxy/proxy/catalog"
	"idproxy/proxy/protocol"
	"idproxy/rewriter"
	"idproxy/rule"
)

// Need is what a decision waits for, of a type for each thing that may be missing. It is an error
// where a decision is under way, so that what finds it returns it as any other.
type Need interface {
	error
	isNeed()
}

// need is embedded by all of them.
type need struct{}

func (need) Error() string { return "something must be asked first" }

func (need) isNeed() {}

type (
	// NeedQuiet means: no command may be pending.
	NeedQuiet struct{ need }
	// NeedProbe means: the session's settings.
	NeedProbe struct{ need }
	// NeedCharset means: character_set_database.
	NeedCharset struct{ need }
	// NeedRenewal means: the statement that is executed must be prepared anew.
	NeedRenewal struct {
		need
		Of *protocol.Stmt
		// Alike: sql_mode alone has changed, and no server would prepare it anew for that.
		Alike bool
	}
	// NeedReading means: the session must read a text as it was read at its PREPARE.
	NeedReading struct {
		need
		Own  *protocol.OwnText
		Text []byte
	}
	// NeedTable means: the columns of a table.
	NeedTable struct {
		need
		Table rewriter.Name
		Key   string
	}
	// NeedMax means: the greatest id in a column.
	NeedMax struct {
		need
		Column *Filling
	}
	// NeedValues means: what expressions for ids are worth.
	NeedValues struct {
		need
		Part    *Part // the statement; nil: they are arguments of EXECUTE
		SQL     []string
		Columns []rule.Column // of each, the column it is for
		Wide    []bool        // of each bound one, whether its column has wide ids; nil: none has
		Strict  []bool        // of each, whether the server refuses text that is no number
	}
	// NeedSource means: the text that an expression gives a PREPARE.
	NeedSource struct {
		need
		SQL string
	}
	// NeedName means: a name in UTF-8, or in the character set of the session.
	NeedName struct {
		need
		Name catalog.Spelling
	}
	// NeedOwner means: whether the table of a key is a temporary one of the session's own.
	NeedOwner struct {
		need
		Key string
	}
	// NeedEngine means: whether the table's engine takes rows back.
	NeedEngine struct {
		need
		Table rewriter.Name
		Facts *catalog.Table
	}
	// NeedAsked means: what SET insert_id asks for.
	NeedAsked struct {
		need
		Part *Part
	}
	// NeedSound means: whether the server can prepare the statement.
	NeedSound struct {
		need
		Part *Part
	}
	// NeedExact means: whether MariaDB keeps the values of a query that stands inside another.
	NeedExact struct {
		need
		Part *Part
		Plan *rewriter.Plan
	}
	// NeedCount means: how many rows a query gives.
	NeedCount struct {
		need
		Part *Part
		Plan *rewriter.Plan
	}
)

// undecided reports whether an error is none for the client: a need, or errCut.
func undecided(err error) bool {
	_, missing := errors.AsType[Need](err)
	return missing || errors.Is(err, errCut)
}

// NeedOf takes the need out of an error that is one.
func NeedOf(err error) (Need, error) {
	if missing, ok := errors.AsType[Need](err); ok {
		return missing, nil
	}
	return nil, err
}

// errCut says that the piece ends in front of a statement: the others must be
// over before it is decided on.
var errCut = errors.New("the statements in front must be over first")

// errOpen says that the end of an INSERT must be found before it is decided on.
var errOpen = errors.New("the end of the statement must be found first")

// lacksEngine says that the engine of the part's table is to be asked for.
func (p *Part) lacksEngine() error { return NeedEngine{Table: p.Name, Facts: p.Facts} }
