package rewriter

import (
	"idproxy/ascii"
	"idproxy/rule"
)

// Form says how ids of the i-th of the plan's columns are written.
func (p *Plan) Form(i int) rule.Form { return p.slots[i].form }

// wideID reads the id of a row for a slot of wide ids. Only NULL, DEFAULT and an id that is not
// there generate. A literal is explicit; any other expression may turn out to be NULL, and gets an
// id for that case.
func (r *valueReader) wideID(k int) (behind token, err error) {
	v := &r.plan.slots[k].last
	start := r.spot()
	behind, ok, err := r.wideLiteral(k)
	if ok || err != nil {
		return behind, err
	}
	if r.plan.slots[k].uuid { // beside the bytes of an id, text would be taken for bytes too
		return behind, unsupported("expression for column " + r.plan.slots[k].rule.Column + " of type UUID")
	}
	r.goBack(start)
	before := v.crossed
	*v = value{kind: valueMaybe, start: v.start}
	if v.end, behind, err = r.skip(); err == nil && r.crossed != before {
		err = unsupported(faultVersion)
	}
	return behind, err
}

// wideLiteral is literal for wide ids.
func (r *valueReader) wideLiteral(k int) (behind token, ok bool, err error) {
	v := &r.plan.slots[k].last
	t := r.next()
	*v = value{start: t.start, end: t.end, crossed: r.crossed}
	switch {
	case t.kind == tokBad:
		return t, false, r.unexpected(t)
	case r.punct(t, ')') && !r.assigning:
		return t, false, ErrRefusedByServer
	case r.isNull(t):
		v.kind = valueNull
	case r.isWord(t, "default"):
		v.kind, v.end = valueNull, r.defaultOf(k, t.end)
	case r.punct(t, '?') && r.prepared:
		v.kind = valueBound
	case !r.punct(t, '@') && !r.isWord(t, "last_insert_id") && (&operandReader{&r.scanner}).operand(t):
		v.kind, v.end = valueUnknown, r.pos
	}
	if v.kind == valueOther || r.crossed != v.crossed {
		return t, false, nil
	}
	behind = r.next()
	return behind, r.ends(behind), nil
}

// wrap makes the edits for an expression that gets an id if it is NULL.
func (p *Plan) wrap(k int) {
	v := &p.slots[k].last
	start := len(p.buffer)
	p.buffer = append(p.buffer, "IFNULL("...)
	p.insert(v.start, start)
	p.edit(v.end, v.end, opCloseID, k)
}

// unloadable says why a file cannot be given ids of the rule.
func unloadable(r *rule.Rule) string {
	switch {
	case !ascii.ValidString(r.Column):
		return "column name beyond ASCII"
	case r.IDs.Wide():
		return "LOAD DATA into column " + r.Column + ", whose ids are no numbers"
	case r.Gene != nil:
		return "LOAD DATA into a table whose ids have a gene"
	}
	return ""
}
