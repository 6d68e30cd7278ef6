package redis

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"idproxy/idsource/lease"
)

// TestScriptObeysTheRules makes random calls and compares every answer, and
// the record behind it, with what the functions of package lease say.
func TestScriptObeysTheRules(t *testing.T) {
	s := open(t, Config{})
	random := rand.New(rand.NewPCG(1, 2))
	const pool, numbers, steps = "rules", 3, 800
	fill(t, s, pool, numbers)
	list := func() lease.Listing {
		l, err := s.List(t.Context(), pool)
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
	before := list()
	tokens := []string{"none", "none", "none"} // by number: who held it last
	seen := map[string]int{}
	for step := range steps {
		if random.IntN(4) == 0 {
			time.Sleep(time.Duration(random.IntN(100)) * time.Millisecond)
		}
		a := ask(pool)
		a.Worker = random.Uint64N(numbers)
		a.Token = tokens[a.Worker]
		if random.IntN(8) == 0 {
			a.Token = "other"
		}
		a.Last = before.Records[a.Worker].Start + random.Int64N(120) - 10
		var want lease.Record
		var verdict lease.Verdict
		var r lease.Reply
		var err error
		op := random.IntN(6)
		switch op {
		case 0, 1:
			a.Token, a.Reclaim = fmt.Sprintf("t%d", step), random.IntN(2) == 0
			r, err = s.Take(t.Context(), a)
			want, verdict = wantTake(t, before, a, r)
		case 2:
			r, err = s.Release(t.Context(), a)
			want, verdict = quick.Release(before.Records[a.Worker], r.Now, a.Use)
		default:
			r, err = s.Renew(t.Context(), a)
			want, verdict = quick.Renew(before.Records[a.Worker], r.Now, a.Use)
		}
		if err != nil {
			t.Fatal(err)
		}
		if r.Verdict != verdict {
			t.Fatalf("step %d, op %d: %v, the rules say %v", step, op, r.Verdict, verdict)
		}
		seen[fmt.Sprint(op, r.Verdict)]++
		after := list()
		if r.Verdict == lease.Granted {
			if got := after.Records[r.Worker]; got != want || r.Start != want.Start || r.Fence != want.Fence {
				t.Fatalf("step %d, op %d: record %v, reply %+v; the rules say %v", step, op, got, r, want)
			}
			if op < 2 {
				tokens[r.Worker] = a.Token
			}
			before.Records[r.Worker] = want
		}
		for w, rec := range after.Records {
			if rec != before.Records[w] {
				t.Fatalf("step %d, op %d: number %d changed from %v to %v", step, op, w, before.Records[w], rec)
			}
		}
	}
	for _, must := range []string{"0granted", "0wait", "0no number is free", "2granted", "3granted", "2" + lease.Stolen.String(), "3" + lease.Late.String(), "3" + lease.Gone.String()} {
		found := false
		for what := range seen {
			found = found || what == must || what == must[:1]+" "+must[1:]
		}
		if !found {
			t.Errorf("never seen: %s; seen: %v", must, seen)
		}
	}
}

// wantTake checks the choice of a number and returns its record as the rules
// make it.
func wantTake(t *testing.T, before lease.Listing, a lease.Ask, r lease.Reply) (lease.Record, lease.Verdict) {
	t.Helper()
	if r.Verdict == lease.Granted {
		old := before.Records[r.Worker]
		if old.State == lease.Held && !a.Reclaim {
			t.Fatalf("number %d is taken from its holder without being asked to", r.Worker)
		}
		want, _, verdict := quick.Take(old, r.Now, a.Token, a.Label)
		return want, verdict
	}
	verdict := lease.Empty
	least := int64(1 << 62)
	for w, old := range before.Records {
		_, wait, v := quick.Take(old, r.Now, a.Token, a.Label)
		if v == lease.Granted && (old.State == lease.Free || a.Reclaim) {
			t.Fatalf("%v, but number %d could be taken: %v", r.Verdict, w, old)
		}
		if least = min(least, wait); a.Reclaim {
			verdict = lease.Wait
		}
	}
	if verdict == lease.Wait && r.Wait != time.Duration(least)*time.Millisecond {
		t.Fatalf("wait %v, the rules say %d ms", r.Wait, least)
	}
	return lease.Record{}, verdict
}
