package top

import (
	"fmt"
	"math"
	"strings"
	"time"
	"unicode"
)

// Tone is how loud a text is.
type Tone int

// The tones.
const (
	Plain Tone = iota
	Loud       // it is worth a look
	Alarm      // something is wrong
)

// Cell is a field of a table.
type Cell struct {
	Text string
	Tone Tone
	sort float64 // numbers are sorted by it; NaN: the number is not known
}

// words returns a cell of a text. A client may have chosen the text: what a terminal could take
// for a command is left out of it.
func words(text string) Cell { return Cell{Text: printable(text)} }

func printable(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return ' '
	}, text)
}

// number returns a cell of a count.
func number(n uint64) Cell { return Cell{Text: short(float64(n)), sort: float64(n)} }

// unknown is a cell of a number that is not known.
func unknown() Cell { return Cell{Text: "-", sort: math.NaN()} }

// rate returns a cell of a figure per second.
func rate(perSecond float64) Cell {
	switch {
	case math.IsNaN(perSecond):
		return unknown()
	case perSecond > 0 && perSecond < 10:
		return Cell{Text: fmt.Sprintf("%.1f", perSecond), sort: perSecond}
	}
	return Cell{Text: short(perSecond), sort: perSecond}
}

// loudRate is rate of what should not happen.
func loudRate(perSecond float64) Cell {
	c := rate(perSecond)
	if perSecond > 0 {
		c.Tone = Loud
	}
	return c
}

// span returns a cell of a duration.
func span(d time.Duration) Cell {
	return Cell{Text: shortSpan(d), sort: float64(d)}
}

// clock returns a cell of a moment of this day, or its date.
func clock(at, now time.Time) Cell {
	layout := time.TimeOnly
	if now.Sub(at) > 12*time.Hour {
		layout = "Jan 02 15:04"
	}
	return Cell{Text: at.Local().Format(layout), sort: float64(at.UnixMicro())}
}

// short writes a number in five characters: 9999, 12.3k, 1.2M.
func short(n float64) string {
	if n < 10_000 {
		return fmt.Sprintf("%.0f", n)
	}
	for _, unit := range "kMGTP" {
		n /= 1000
		switch {
		case n < 99.95:
			return fmt.Sprintf("%.1f%c", n, unit)
		case n < 9999.5:
			return fmt.Sprintf("%.0f%c", n, unit)
		}
	}
	return "lots"
}

// shortSpan writes a duration by its two largest units: 250µs, 1.5ms, 12s, 3m20s, 5h12m, 9d.
func shortSpan(d time.Duration) string {
	const day = 24 * time.Hour
	switch {
	case d < time.Millisecond:
		return fmt.Sprintf("%dµs", d.Microseconds())
	case d < time.Second:
		return fmt.Sprintf("%.1fms", float64(d)/float64(time.Millisecond))
	case d < time.Minute:
		return fmt.Sprintf("%ds", int(d.Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%dm%02ds", int(d.Minutes()), int(d.Seconds())%60)
	case d < 2*day:
		return fmt.Sprintf("%dh%02dm", int(d.Hours()), int(d.Minutes())%60)
	}
	return fmt.Sprintf("%dd", d/day)
}

// perSecond is the figure between two counts; NaN when it is not known, because there is no earlier
// count or it was greater.
func perSecond(now, before uint64, known bool, seconds float64) float64 {
	if !known || seconds <= 0 || now < before {
		return math.NaN()
	}
	return float64(now-before) / seconds
}
