package proxy

import "idproxy/proxy/stats"

// account is how a held command is counted and told of.
type account struct {
	outcome stats.Kind
	asking  stats.Question // why commands of our own are sent now
	lags    bool           // what the session's server has may not be all there is
	trace   *tracer        // told what becomes of it; nil: nobody is
}

// counts notes what became of the command, unless something that tells more became of it.
func (a *account) counts(k stats.Kind) { a.outcome = max(a.outcome, k) }

// askFor says why commands of our own are sent until the returned function is called.
func (a *account) askFor(why stats.Question) (end func()) {
	before := a.asking
	a.asking = why
	return func() { a.asking = before }
}
