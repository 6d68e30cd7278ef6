package segment

import "time"

// meter tells how fast ids go, for who watches. It is apart from pace, which follows a burst at once
// and must not be measured more often because someone looks.
type meter struct {
	at    time.Time
	total uint64
	rate  float64
}

// meterPeriod is what is measured over at least, however often someone looks.
const meterPeriod = 5 * time.Second

// measure returns how much a total grows in a second.
func (m *meter) measure(now time.Time, total uint64) float64 {
	if m.at.IsZero() {
		m.at, m.total = now, total
		return 0
	}
	if passed := now.Sub(m.at); passed >= meterPeriod {
		m.rate = float64(total-min(total, m.total)) / passed.Seconds()
		m.at, m.total = now, total
	}
	return m.rate
}
