package relay

import (
	"slices"
	"sync/atomic"

	"idproxy/rewriter"
)

// Hidden are the parameters of a statement that the server has with some of the proxy's among the
// client's: those that the ids of an INSERT are bound to.
type Hidden struct {
	All    []rewriter.Parameter
	Client int      // how many are the client's
	places []uint16 // of those among all, once long data has asked for them
	// derived are the types of the client's parameters, once the reply to the PREPARE has come.
	derived atomic.Pointer[[]uint16]
}

// Derived returns the types that the server gave the client's parameters at the PREPARE, maybe with
// wire.Unsigned. There are none where nobody has seen them, or where no parameter is an id.
func (h *Hidden) Derived() []uint16 {
	if types := h.derived.Load(); types != nil {
		return *types
	}
	return nil
}

// binds reports whether one of the client's parameters is an id.
func (h *Hidden) binds() bool {
	return slices.ContainsFunc(h.All, func(p rewriter.Parameter) bool { return p.Role == rewriter.RoleBound })
}

// position returns the place among all parameters of one of the client's, and its
// role. What the client does not have lies behind all.
func (h *Hidden) position(client int) (at int, role rewriter.Role) {
	if h.places == nil {
		for i := range h.All {
			if !h.All[i].Role.Hidden() {
				h.places = append(h.places, uint16(i))
			}
		}
	}
	if client >= len(h.places) {
		return len(h.All) + client - len(h.places), rewriter.RoleValue
	}
	at = int(h.places[client])
	return at, h.All[at].Role
}

// Hides reports whether the n-th packet behind the first of a reply to the
// PREPARE is not for the client: the definition of a hidden parameter, or the
// EOF behind definitions of which none is left. defined: there are definitions;
// ended: and an EOF behind them.
func (h *Hidden) Hides(n int, defined, ended bool) bool {
	if defined && n < len(h.All) {
		return h.All[n].Role.Hidden()
	}
	if defined {
		n -= len(h.All)
	}
	return ended && n == 0 && h.Client == 0 && len(h.All) > 0
}
