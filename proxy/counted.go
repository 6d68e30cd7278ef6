package proxy

import (
	"github.com/go-mysql-org/go-mysql/mysql"

	"idproxy/proxy/clienterr"
	"idproxy/proxy/decide"
	"idproxy/proxy/stats"
)

// countRefusal counts the command, by the rule that refuses it and its reason.
func (s command) countRefusal(cause error, e *mysql.MyError) {
	s.counts(stats.Refused)
	why, by := clienterr.ReasonOf(cause)
	name := ""
	if by != nil {
		by.Counts.Refused(why)
		name = by.String()
	} else {
		s.l.srv.refused.Refused(why)
	}
	s.trace.refused(name, why, e)
	if s.l.srv.cfg.OnRefused != nil && s.held != nil {
		s.l.srv.cfg.OnRefused(RefusedStatement{
			Listener: s.l.Name, User: s.c.User(), Rule: name, Reason: why.String(), Code: e.Code, Text: clienterr.Explained(cause),
			Statement: s.at.decider.Outline(s.held, s.c.Vars().Mode),
		})
	}
}

// countObserved counts a statement that an observing rule would have treated otherwise.
func (s *session) countObserved(o *decide.Observation) {
	s.counts(stats.Observed)
	o.By.Counts.Observed()
	if s.l.srv.cfg.OnRefused != nil {
		text := o.What
		if o.Refusal != nil && !o.Passes {
			text = "would refuse: " + clienterr.Explained(o.Refusal)
		}
		s.l.srv.cfg.OnRefused(RefusedStatement{
			Listener: s.l.Name, User: s.c.User(), Rule: o.Rule, Reason: "observed", Text: text, Statement: o.Statement,
		})
	}
}

// questionOf returns what a need is counted as.
func questionOf(n decide.Need) stats.Question {
	switch n.(type) {
	case decide.NeedRenewal:
		return stats.Renewal
	case decide.NeedReading:
		return stats.Reading
	case decide.NeedProbe:
		return stats.Setting
	case decide.NeedTable:
		return stats.Columns
	case decide.NeedMax:
		return stats.Greatest
	case decide.NeedValues, decide.NeedSource:
		return stats.Values
	case decide.NeedCharset:
		return stats.Charset
	case decide.NeedName:
		return stats.Name
	case decide.NeedOwner:
		return stats.Owner
	case decide.NeedEngine:
		return stats.Engine
	case decide.NeedAsked:
		return stats.InsertID
	case decide.NeedSound:
		return stats.Soundness
	case decide.NeedExact:
		return stats.Exactness
	case decide.NeedCount:
		return stats.Count
	}
	return stats.Quiet
}
