package proxy

// concernsName reports whether the execution of a statement prepared in SQL may have to
// be decided on.
func (d *decider) concernsName(rules ruleBook) bool {
	if d.c.prepared.passed.mayInsert(rules.List) {
		return true
	}
	for _, e := range d.c.prepared.byName {
		if e.held() || e.unread || e.ruled(rules) {
			return true
		}
	}
	return false
}
