package simulation

import (
	"slices"
	"time"

	"idproxy/idsource/lease"
	"idproxy/idsource/order"
)

// kinds are the fleets, each with a store and with what the documents say it survives.
var kinds = []*kind{
	{
		name: "segment-lossy", weight: 24, make: func(w *world, p *plan) fleet { return newSegments(w, p) },
		beats: []time.Duration{10 * time.Second}, long: 4000, think: 4, count: 60,
		draw: slices.Concat(processFaults, linkFaults),
	},
	{
		name: "segment-crash", weight: 24, make: func(w *world, p *plan) fleet { return newSegments(w, p) },
		beats: []time.Duration{10 * time.Second}, long: 4000, think: 4, count: 60,
		draw: slices.Concat(processFaults, linkFaults, storeFaults),
	},
	{
		name: "segment-restore", weight: 24, make: func(w *world, p *plan) fleet { return newSegments(w, p) },
		beats: []time.Duration{10 * time.Second}, long: 4000, think: 4, count: 40,
		draw: slices.Concat(processFaults, linkFaults, []draw{
			{what: "restore", weight: 20, lasts: span(time.Second, time.Minute), size: number(int64(time.Second), int64(time.Hour)), apart: time.Hour},
			{what: "emptied", weight: 4, lasts: span(time.Second, time.Minute), apart: time.Hour},
		}),
	},
	{
		name: "segment-shards", weight: 12, make: twoShards,
		beats: []time.Duration{10 * time.Second}, long: 1000, think: 4, count: 20,
		draw: slices.Concat(processFaults, linkFaults, storeFaults),
	},
	{
		name: "moves", weight: 12, few: 4, make: newMoves,
		beats: []time.Duration{10 * time.Second}, long: 100, think: 1, count: 40,
		draw: slices.Concat(processFaults, linkFaults, storeFaults, []draw{
			{what: "reload", weight: 12, size: number(0, 999)},
			{what: "reload all", weight: 24, lasts: beatSpan(0.5), size: number(0, 999)},
			{what: "restart", weight: 8, lasts: beatSpan(0.5), size: number(0, 999)},
			{what: "upgrade", weight: 8},
			{what: "restore", weight: 8, lasts: span(10*time.Second, time.Minute), size: number(0, 999)},
			{what: "emptied", weight: 1, lasts: span(time.Minute, 2*time.Minute)},
		}),
	},
	{
		name: "renames", weight: 0.3, few: 4, make: newRenames,
		beats: []time.Duration{10 * time.Second}, long: 100, think: 1, count: 40,
		draw: slices.Concat(processFaults, linkFaults, storeFaults, []draw{
			{what: "reload", weight: 4, size: number(0, 999)},
			{what: "reload all", weight: 12, lasts: beatSpan(0.5), size: number(0, 999)},
			{what: "restart", weight: 2, lasts: beatSpan(0.5), size: number(0, 999)},
			{what: "upgrade", weight: 4},
			{what: "rename", weight: 40, lasts: span(time.Second, time.Minute), size: number(0, 999)},
		}),
	},
	{
		name: "number-crash", weight: 4, make: func(w *world, p *plan) fleet { return newNumbers(w, p) }, beats: renewals, long: 3000, think: 2, count: 60,
		draw: slices.Concat(processFaults, diskFaults, clockFaults),
	},
	{
		name: "number-restore", weight: 4, make: func(w *world, p *plan) fleet { return newNumbers(w, p) }, beats: renewals, long: 3000, think: 2, count: 40,
		draw: slices.Concat(processFaults, diskFaults, []draw{
			{what: "restore", weight: 8, lasts: span(time.Second, time.Minute), size: number(int64(time.Second), int64(time.Hour))},
			{what: "lost", weight: 8},
			{what: "restart", weight: 8, lasts: span(time.Millisecond, time.Second)},
			{what: "reload", weight: 16, lasts: span(time.Second, time.Minute)},
		}),
	},
	{
		name: "number-places", weight: 0.5, few: 4, make: newPlaces, beats: renewals[:2], long: 300, think: 1, count: 40,
		draw: slices.Concat(processFaults, diskFaults, []draw{
			{what: "restart", weight: 16, lasts: span(time.Millisecond, time.Second), size: number(0, 3)},
			{what: "reload", weight: 24, lasts: span(time.Second, time.Minute), size: number(0, 3)},
		}),
	},
	lossyPool("redis-lossy", scripted), lossyPool("mysql-lossy", tabled), lossyPool("etcd-lossy", clockless),
	{
		name: "redis-file", weight: 1, make: func(w *world, p *plan) fleet { return newPools(w, p, pools{safe: true, old: true}) },
		beats: renewals, long: 400, think: 2, count: 60,
		draw: slices.Concat(processFaults, linkFaults, []draw{
			{what: "file back", weight: 40, lasts: span(1001*time.Millisecond, 8*time.Second), size: number(int64(time.Millisecond), int64(time.Second))},
		}),
	},
	losingPool("redis-crash", scripted, draw{what: "crash", lasts: beatSpan(4)}, draw{what: "hidden", size: number(1, int64(lease.Loss))}),
	losingPool("redis-replica", scripted, draw{what: "replica", size: number(1, int64(10*time.Minute))}),
	losingPool("redis-restore", scripted, draw{what: "old dump", lasts: beatSpan(3), size: number(1, int64(time.Hour))}, draw{what: "emptied", lasts: beatSpan(4)}),
	losingPool("mysql-restore", tabled, draw{what: "old dump", lasts: beatSpan(3), size: number(1, int64(time.Hour))}, draw{what: "replica", size: number(1, int64(10*time.Minute))}),
	losingPool("etcd-restore", clockless, draw{what: "old dump", lasts: beatSpan(3), size: number(1, int64(time.Hour))}),
	fewPool("redis-few", losing,
		draw{what: "loss behind taking", weight: 16, lasts: span(time.Second, 10*time.Second)},
		draw{what: "loss behind silence", weight: 16, lasts: span(5*time.Second, 40*time.Second)},
		draw{what: "replica behind taking", weight: 16, lasts: span(5*time.Second, 40*time.Second), size: number(-int64(900*time.Millisecond), int64(900*time.Millisecond))},
	),
	fewPool("redis-few-lossy", keeping,
		draw{what: "end unheard", weight: 16, lasts: span(time.Second, 20*time.Second)},
		draw{what: "clock behind freeing", weight: 16, lasts: span(time.Second, 10*time.Second), size: number(int64(time.Second), int64(20*time.Second))},
	),
	{
		name: "order", weight: 0.004, make: func(w *world, p *plan) fleet { return newOrders(w, clocksRun) },
		beats: beats, long: 160, think: 2, count: 40,
		draw: slices.Concat(processFaults, linkFaults, lineFaults, electionFaults),
	},
	{
		name: "order-stands", weight: 0.002, make: func(w *world, p *plan) fleet { return newOrders(w, clocksStand) },
		beats: beats, long: 160, think: 2, count: 40,
		draw: slices.Concat(processFaults, linkFaults, lineFaults, electionFaults, []draw{
			{what: "stand at", weight: 30, lasts: beatSpan(12), size: number(1, 40)},
		}),
	},
	{
		name: "order-few", weight: 0.001, few: 3, make: func(w *world, p *plan) fleet { return newOrders(w, clocksRun) },
		beats: beats, long: 160, think: 1, count: 40,
		draw: slices.Concat(processFaults, linkFaults, lineFaults, electionFaults, []draw{
			{what: "unheard lead", weight: 30, lasts: span(300*time.Millisecond, 1200*time.Millisecond), size: number(0, 1)},
			{what: "stop behind beat", weight: 20, lasts: span(time.Second, 3*time.Second)},
		}),
	},
	{
		name: "order-restore", weight: 0.001, few: 4, make: func(w *world, p *plan) fleet { return newOrders(w, clocksRun) },
		beats: beats, long: 160, think: 1, count: 20,
		draw: slices.Concat(processFaults, linkFaults, []draw{
			{what: "restore", weight: 30, lasts: span(time.Second, 5*time.Second), size: number(int64(time.Millisecond), int64(10*time.Second)), apart: 8 * time.Second},
		}),
	},
}

// beats is how often who leads shows itself.
var beats = []time.Duration{order.DefaultRules.Beat}

// lineFaults are what can happen to the connections of a host to others.
var lineFaults = []draw{
	{what: "line cut off", weight: 3, lasts: beatSpan(8)},
	{what: "line lossy", weight: 3, lasts: beatSpan(8)},
	{what: "line cut", weight: 4, lasts: beatSpan(8)},
	{what: "line late", weight: 6, lasts: beatSpan(8)},
	{what: "line all", weight: 4, lasts: beatSpan(8)},
	{what: "net late", weight: 2, lasts: beatSpan(12)},
	{what: "net cut", weight: 3, lasts: beatSpan(12)},
	{what: "net all", weight: 3, lasts: beatSpan(12)},
}

// electionFaults are what can happen to an etcd that loses nothing, and to who cannot ask it.
var electionFaults = []draw{
	{what: "crash", weight: 4, lasts: beatSpan(8)},
	{what: "slow", weight: 4, lasts: beatSpan(8), size: number(int64(10*time.Millisecond), int64(time.Second))},
	{what: "cut off", weight: 10, lasts: span(time.Second, 4*time.Second)}, // another process leads by then
}

// renewals is how often a holder renews: the default, and what keeps a patient one.
var renewals = []time.Duration{2 * time.Second, 10 * time.Second, time.Minute}

// diskFaults are what can happen to the disk of a host.
var diskFaults = []draw{
	{what: "cut off", weight: 4, lasts: beatSpan(4)},
	{what: "cut", weight: 8, lasts: beatSpan(4)},
	{what: "lossy", weight: 4, lasts: beatSpan(4)},
	{what: "slow", weight: 3, lasts: beatSpan(4), size: number(int64(time.Millisecond), int64(6*time.Second))},
	{what: "reboot", weight: 6, lasts: beatSpan(1)},
}

// lossyPool is a pool whose store loses nothing. Its clock, or the hosts', may show anything.
func lossyPool(name string, of form) *kind {
	clock := []draw{
		{what: "time", weight: 4, size: number(-int64(10*time.Second), int64(10*time.Second))},
		{what: "time for", weight: 5, lasts: beatSpan(3), size: number(-int64(5*time.Hour), int64(5*time.Hour))},
	}
	if of == clockless {
		clock = clockFaults
	}
	return &kind{
		name: name, weight: 1, make: func(w *world, p *plan) fleet { return newPools(w, p, pools{form: of, safe: true}) },
		beats: renewals, long: 800, think: 2, count: 60,
		draw: slices.Concat(processFaults, linkFaults, clock, []draw{
			{what: "slow", weight: 3, lasts: beatSpan(6), size: number(int64(time.Millisecond), int64(2*time.Second))},
			{what: "reboot", weight: 3, lasts: beatSpan(1)},
		}),
	}
}

// loss says whether the store of a pool loses something.
type loss bool

const (
	losing  loss = true
	keeping loss = false
)

// fewPool is a pool with one number less than there are processes, so that one of them always waits, and
// with disasters that come where a number changes hands.
func fewPool(name string, safe loss, disasters ...draw) *kind {
	for i := range disasters {
		if safe == losing {
			disasters[i].beats, disasters[i].apart = 30, ambushed
		}
	}
	return &kind{
		name: name, weight: 1, few: 4, make: func(w *world, p *plan) fleet {
			return newPools(w, p, pools{form: scripted, safe: safe == keeping, few: true})
		},
		beats: renewals[:1], long: 250, think: 1, count: 30, draw: slices.Concat(processFaults, linkFaults, disasters),
	}
}

// losingPool is a pool whose store is lost in part: never twice within what the rules bound.
func losingPool(name string, of form, losses ...draw) *kind {
	for i := range losses {
		losses[i].weight, losses[i].beats, losses[i].apart = 12, 30, 30*time.Second
	}
	return &kind{
		name: name, weight: 1, make: func(w *world, p *plan) fleet { return newPools(w, p, pools{form: of}) },
		beats: renewals, long: 800, think: 2, count: 50,
		draw: slices.Concat(processFaults, linkFaults, losses, []draw{
			{what: "slow", weight: 3, lasts: beatSpan(6), size: number(int64(time.Millisecond), int64(2*time.Second))},
			{what: "reboot", weight: 3, lasts: beatSpan(1)},
		}),
	}
}
