package rewriter

import (
	"idproxy/ascii"
	"idproxy/rule"
)

// Form says how ids of the i-th of the plan's columns are written.
func (p *Plan) Form(i int) rule.Form { return p.slots[i].form }

// wideID reads the id of a row for a slot of wide ids. Only NULL, DEFAULT and an id that is not there generate. A literal is
// explicit; any other expression may turn out to be NULL, and gets an id for that case.
func (r *planReader) wideID(k int) (behind token, err error) {
	v := &r.plan.slots[k].last
	pos, inVersion, crossed := r.pos, r.inVersion, r.crossed
	t := r.next()
	*v = value{start: t.start, end: t.end}
	before := r.crossed
	switch {
	case t.kind == tokBad:
		return t, r.unexpected(t)
	case r.punct(t, ')') && !r.assigning:
		return t, ErrRefusedByServer
	case r.isWord(t, "null"), t.kind == tokNumber && string(r.text[t.start:t.end]) == `\N` && r.knowsBackslashN():
		v.kind = valueNull
	case r.isWord(t, "default"):
		v.kind = valueNull
		v.end = r.defaultOf(k, t.end)
	case r.punct(t, '?') && r.prepared:
		v.kind = valueBound
	case !r.punct(t, '@') && !r.isWord(t, "last_insert_id") && r.operand(t):
		v.kind, v.end = valueUnknown, r.pos
	}
	if v.kind != valueOther && r.crossed == before {
		if behind = r.next(); r.ends(behind) {
			return behind, nil
		}
	}
	if r.plan.slots[k].uuid { // beside the bytes of an id, text would be taken for bytes too
		return t, unsupported("expression for column " + r.plan.slots[k].rule.Column + " of type UUID")
	}
	r.pos, r.inVersion, r.crossed = pos, inVersion, crossed
	*v = value{kind: valueMaybe, start: t.start}
	if v.end, behind, err = r.skip(); err == nil && r.crossed != before {
		err = unsupported(faultVersion)
	}
	return behind, err
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
