package explain

import (
	"context"
	"math"

	"github.com/go-mysql-org/go-mysql/mysql"

	"idproxy/proxy/catalog"
	"idproxy/proxy/clienterr"
	"idproxy/proxy/draw"
	"idproxy/proxy/protocol"
	"idproxy/rewriter"
	"idproxy/rule"
)

// carrier carries orders out as far as to write what would be sent. It implements decide.Carrier.
type carrier struct{ *session }

func (s carrier) Conversation() *protocol.Conn  { return &s.conversation }
func (s carrier) Context() context.Context      { return s.ctx }
func (s carrier) Asker() *catalog.Asker         { return s.asker }
func (s carrier) Drew(*rule.Rule, int)          {}
func (s carrier) Filled()                       {}
func (s carrier) ReadAsNow() error              { return nil }
func (s carrier) Prepares(*protocol.Stmt)       {}
func (s carrier) Told(err error) *mysql.MyError { return clienterr.From(err) }

// IDsOf returns made-up ids. What the column holds does not bound them.
func (s carrier) IDsOf(r *rule.Rule, _ rule.Column, t rewriter.Name, f *catalog.Table) (draw.Column, error) {
	table, err := f.Series(r.Column, t)
	if err != nil {
		return draw.Column{}, clienterr.OutOfIDs(r, err)
	}
	return draw.From(s.sources, r, table, math.MaxUint64)
}

// Carry notes what variables are set.
func (s carrier) Carry(set []byte) error {
	s.out.note("sent in front of it: %s", set)
	return nil
}
