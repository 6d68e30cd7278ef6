package decide

// concernsName reports whether the execution of a statement prepared in SQL may have to
// be decided on.
func (cx *reading) concernsName() bool {
	if cx.now.Statements.Passed.MayInsert(cx.rules.List) {
		return true
	}
	for _, e := range cx.now.Statements.ByName {
		if e.Held() || e.Unread || e.Ruled(cx.rules) {
			return true
		}
	}
	return false
}
