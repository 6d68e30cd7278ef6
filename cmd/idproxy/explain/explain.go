// Package explain says what becomes of statements: which go to the server as they are, which
// get ids, and which are refused by which rule. The proxy's own code decides that: a session
// is played with a server that takes everything, and with ids that are made up.
package explain

import (
	"context"

	"idproxy/cmd/idproxy/upstream"
	"idproxy/config"
)

// Text explains the statements of a text, which the first listener of a configuration gets in
// a session with the server's default settings.
func Text(ctx context.Context, cfg *config.Config, text []byte, o Options) ([]*Outcome, error) {
	s := newSession(ctx, cfg, &cfg.Listeners[0], o)
	if o.Online {
		u, _, err := upstream.OpenUsed(ctx, cfg, &cfg.Listeners[0])
		if err != nil {
			return nil, err
		}
		defer u.Close()
		end, err := s.ask(u)
		if err != nil {
			return nil, err
		}
		defer end()
	}
	return s.explain(text)
}
