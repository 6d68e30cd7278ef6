package file

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"idproxy/idsource"
)

const (
	storeKind    = "idproxy store 1"
	segmentsKind = "idproxy segments 1"
	workersKind  = "idproxy workers 1"
	fenceKind    = "idproxy fence 1"
)

type positions map[string]idsource.Position

// render writes one line per key: the quoted key, its position, whether it
// was used, and who sealed it.
func (p positions) render() []byte {
	lines := make([]string, 0, len(p))
	for _, key := range slices.Sorted(maps.Keys(p)) {
		state := "new"
		if p[key].Used {
			state = "used"
		}
		if seal := p[key].Sealed; seal != 0 {
			state += " sealed"
			if seal != idsource.UnknownSeal {
				state += fmt.Sprintf(" %d", seal)
			}
		}
		lines = append(lines, fmt.Sprintf("%s %d %s", strconv.QuoteToASCII(key), p[key].Next, state))
	}
	return seal(segmentsKind, lines)
}

func parsePositions(data []byte) (positions, error) {
	lines, err := unseal(segmentsKind, data)
	if err != nil {
		return nil, err
	}
	p := make(positions, len(lines))
	last := ""
	for i, line := range lines {
		key, pos, err := parsePosition(line)
		if err == nil && i > 0 && key <= last {
			err = errors.New("keys are not in order")
		}
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", i+2, err)
		}
		p[key], last = pos, key
	}
	return p, nil
}

func parsePosition(line string) (key string, p idsource.Position, err error) {
	quoted, err := strconv.QuotedPrefix(line)
	if err != nil {
		return "", p, fmt.Errorf("no key in %.40q", line)
	}
	if key, err = strconv.Unquote(quoted); err != nil || strconv.QuoteToASCII(key) != quoted {
		return "", p, fmt.Errorf("key %.40q is not written as it should be", quoted)
	}
	next, state, _ := strings.Cut(strings.TrimPrefix(line[len(quoted):], " "), " ")
	state, by, sealed := strings.Cut(state, " sealed")
	if p.Next, err = parseNumber(next); err != nil {
		return "", p, err
	}
	if sealed {
		if p.Sealed, err = parseSeal(by); err != nil {
			return "", p, err
		}
	}
	p.Used = state == "used"
	if !p.Used && state != "new" || line[len(quoted)] != ' ' {
		return "", p, fmt.Errorf("state %.20q is neither new nor used", state)
	}
	return key, p, nil
}

// parseSeal reads who sealed a key; empty: an earlier version did.
func parseSeal(text string) (idsource.Seal, error) {
	if text == "" {
		return idsource.UnknownSeal, nil
	}
	n, err := parseNumber(strings.TrimPrefix(text, " "))
	if err != nil || text[0] != ' ' || n <= uint64(idsource.UnknownSeal) || n >= uint64(idsource.AnySeal) {
		return 0, fmt.Errorf("%.40q is no seal", text)
	}
	return idsource.Seal(n), nil
}

// parseNumber accepts a number only as it is printed.
func parseNumber(text string) (uint64, error) {
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil || strconv.FormatUint(n, 10) != text {
		return 0, fmt.Errorf("%.40q is not a number", text)
	}
	return n, nil
}

// renderWorkers lists the worker numbers ever used, so that a fence that
// vanished is noticed.
func renderWorkers(workers []uint64) []byte {
	lines := make([]string, len(workers))
	for i, w := range workers {
		lines[i] = strconv.FormatUint(w, 10)
	}
	return seal(workersKind, lines)
}

func parseWorkers(data []byte) ([]uint64, error) {
	lines, err := unseal(workersKind, data)
	if err != nil {
		return nil, err
	}
	workers := make([]uint64, len(lines))
	for i, line := range lines {
		if workers[i], err = parseNumber(line); err != nil {
			return nil, fmt.Errorf("line %d: %w", i+2, err)
		}
		if i > 0 && workers[i] <= workers[i-1] {
			return nil, fmt.Errorf("line %d: workers are not in order", i+2)
		}
	}
	return workers, nil
}

// fence is what is kept of one worker.
type fence struct {
	worker uint64
	layout string
	epoch  string
	until  uint64 // the fence itself
}

func newFence(worker uint64, s idsource.Shape) fence {
	return fence{worker: worker, layout: s.Layout, epoch: s.Epoch.UTC().Format(time.RFC3339Nano)}
}

func (f fence) render() []byte {
	return seal(fenceKind, []string{
		fmt.Sprintf("worker %d", f.worker),
		"layout " + strconv.QuoteToASCII(f.layout),
		"epoch " + strconv.QuoteToASCII(f.epoch),
		fmt.Sprintf("fence %d", f.until),
	})
}

func parseFence(data []byte) (f fence, err error) {
	lines, err := unseal(fenceKind, data)
	if err != nil {
		return fence{}, err
	}
	names := []string{"worker ", "layout ", "epoch ", "fence "}
	if len(lines) != len(names) {
		return fence{}, fmt.Errorf("%d records, not %d", len(lines), len(names))
	}
	values := make([]string, len(names))
	for i, name := range names {
		var found bool
		if values[i], found = strings.CutPrefix(lines[i], name); !found {
			return fence{}, fmt.Errorf("line %d does not start with %q", i+2, name)
		}
	}
	var errs [4]error
	f.worker, errs[0] = parseNumber(values[0])
	f.layout, errs[1] = strconv.Unquote(values[1])
	f.epoch, errs[2] = strconv.Unquote(values[2])
	f.until, errs[3] = parseNumber(values[3])
	if err := errors.Join(errs[:]...); err != nil {
		return fence{}, err
	}
	if string(f.render()) != string(data) {
		return fence{}, errors.New("a record is not written as it should be")
	}
	return f, nil
}
