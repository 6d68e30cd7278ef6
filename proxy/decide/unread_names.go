package decide

import "idproxy/proxy/relay"

// concernsName reports whether the execution of a statement prepared in SQL may have to
// be decided on.
func (d *Decider) concernsName(rules relay.RuleBook) bool {
	if d.Conversation.Prepared.Passed.MayInsert(rules.List) {
		return true
	}
	for _, e := range d.Conversation.Prepared.ByName {
		if e.Held() || e.Unread || e.Ruled(rules) {
			return true
		}
	}
	return false
}
