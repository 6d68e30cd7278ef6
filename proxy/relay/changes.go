package relay

import (
	"bytes"

	"idproxy/rewriter"
)

// choose notes that the command makes a schema the default one. What its name is
// in UTF-8 the server is asked when that matters.
func (p *Pending) choose(schema []byte) {
	if rewriter.DoubtsOf(schema)&rewriter.DoubtCharset != 0 {
		p.Touch |= TouchSchema
		return
	}
	p.After = &After{Schema: bytes.Clone(schema)}
}

// TouchAll is what a statement may change that runs others which are not seen.
const TouchAll = TouchSettings | TouchNumbers | TouchSchema | touchTemps | TouchTables

// Changes says in p what a single statement may change.
func Changes(p *Pending, head rewriter.Head, sql []byte, whole bool) {
	effects := head.Effects(sql)
	if !whole {
		effects |= ^rewriter.SetsTransaction
	}
	p.Touch |= touchOf(head, effects)
	switch head.Kind {
	case rewriter.Execute, rewriter.Call:
		p.Unseen = true
	case rewriter.Compound:
		p.Unseen = false
	case rewriter.Use:
		if len(head.Target.Schema) == 0 || !whole || bytes.IndexByte(sql, '!') >= 0 { // read otherwise by the server, perhaps
			p.Touch |= TouchSchema
		} else {
			p.choose(head.Target.Schema)
		}
	}
	if effects&rewriter.SetsLastID != 0 {
		p.Touch |= TouchLastID
	}
	if effects&rewriter.SetsNumbering != 0 {
		p.Touch |= TouchNumbers
	}
}

// touchOf is what a statement of a kind may change.
func touchOf(head rewriter.Head, effects rewriter.Effects) (t Touch) {
	switch head.Kind {
	case rewriter.Insert, rewriter.Replace:
		return TouchInsert
	case rewriter.Load, rewriter.Portion:
		return TouchLastID
	case rewriter.Execute, rewriter.Call, rewriter.Compound:
		return TouchAll | TouchLastID
	case rewriter.DDL:
		if t = TouchTables; effects&rewriter.RenamesTable != 0 && !head.Create && !head.Drop {
			t |= touchTemps
		}
	case rewriter.Set:
		if effects&rewriter.SetsSettings != 0 {
			t |= TouchSettings
		}
		if effects&rewriter.SetsTransaction != 0 {
			t |= touchNext
		}
	}
	return t
}
