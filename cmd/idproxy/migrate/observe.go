package migrate

import (
	"context"

	"idproxy/cmd/idproxy/switches"
)

// observe is the first step: all proxies forward, and say what they would refuse.
type observe struct{}

func (observe) words() words {
	return words{
		name:  "observe",
		does:  "turns the switch to observe, where it was never turned: INSERTs pass as they are, and the proxies note what they would refuse",
		check: "all proxies have the switch at observe; what they would refuse is listed",
		back:  "nothing has changed: take mode: {switch: ...} out of the rules when the plan is given up",
	}
}

func (observe) sql(*Migration) (there, back []Statement) { return nil, nil }

func (observe) before(context.Context, *Migration) ([]Finding, error) { return nil, nil }

func (observe) do(ctx context.Context, m *Migration) ([]Finding, error) {
	there, s, err := m.at(ctx, switches.Observe)
	if err != nil {
		return nil, err
	}
	if there { // it may have been turned a moment ago
		_, findings, err := m.await(ctx, switches.Observe, s.Version)
		return findings, err
	}
	if s.State == switches.Enforce || enforces(m.ask(ctx, false)) {
		return []Finding{finding(LevelError, "the switch is at enforce already, in the store or in a proxy: take step enforce back first")}, nil
	}
	_, findings, err := m.turn(ctx, switches.Observe)
	return findings, err
}

func (observe) check(ctx context.Context, m *Migration) ([]Finding, error) {
	proxies := m.ask(ctx, true)
	findings := stand(proxies, switches.Observe, 0)
	for _, f := range m.shapes(proxies) {
		f.Level = LevelWarning // step enforce is where it stops
		findings = append(findings, f)
	}
	return findings, nil
}

func (observe) undo(context.Context, *Migration) ([]Finding, error) { return nil, nil }
