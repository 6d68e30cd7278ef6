package decide

import (
	"strings"

	"idproxy/proxy/relay"
)

// begins sees to it that it is known what SET insert_id asks for where a part generates
// ids in the column that would be AUTO_INCREMENT: natively the next statement that does
// so counts from there, and uses that up.
func (cx *reading) begins(st *Statement, p *Part) error {
	native := counting(p.Facts.Table)
	switch {
	case native != "" && !strings.EqualFold(native, p.Rules[0].Column): // that one uses it up
	case p.Rules[0].Packet: // the server may not know it
	case cx.now.Known&relay.KnowAsked != 0:
		if p.result == 0 && st.Asked != nil {
			p.asked = st.Asked
		}
	case p.result > 0: // what stands in front may use it up
		return errCut
	case cx.now.Busy:
		return NeedQuiet{}
	default:
		return NeedAsked{Part: p}
	}
	return nil
}

// askAgain begins anew with the ids that SET insert_id asks for.
func (p *Part) askAgain() {
	if p.asked != nil {
		p.asked.Next = p.asked.First
	}
}
