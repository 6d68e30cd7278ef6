package proxy

import (
	"idproxy/proxy/decide"
	"idproxy/proxy/stats"
)

// counts notes what became of the command, unless something that tells more became of it.
func (s *session) counts(k stats.Kind) { s.outcome = max(s.outcome, k) }

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
