package fleet

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"idproxy/integration/assert"
	"idproxy/integration/harness"
)

// size is how large a fleet is, and how long each part of its life lasts.
type size struct {
	processes, shards, servers, tables int
	begun                              int // tables whose series begin here; the others were used before
	sessions                           int // of each process, in turn
	clients                            int // who insert, of each process
	span                               time.Duration
}

var (
	small = size{processes: 2, shards: 4, servers: 1, tables: 20, begun: 10, sessions: 40, clients: 1, span: 300 * time.Millisecond}
	full  = size{processes: 16, shards: 64, servers: 2, tables: 1000, begun: 20, sessions: 5000, clients: 2, span: 20 * time.Second}
)

// fleet is all that lives.
type fleet struct {
	size
	store   store
	shards  *shards
	members []*member
	report  report
}

// TestFleet: nothing that happens to a fleet brings an id twice, or an error but that there are no
// ids while the store is away.
func TestFleet(t *testing.T) {
	f := &fleet{size: small}
	if os.Getenv("IDPROXY_FLEET") != "" {
		f.size = full
	}
	newStore := newMySQLStore
	if os.Getenv("IDPROXY_FLEET") == "etcd" {
		newStore = newEtcdStore
	}
	f.store, f.shards = newStore(t), newShards(t, f.size)
	defer f.report.print(t) // what was measured until something failed, too
	for number := range f.processes {
		f.members = append(f.members, newMember(t, number, f.shards, f.store.config()))
	}
	f.startAll(t)
	f.firstIDs(t)
	f.openSessions(t)
	cold := begin(t, f.members, f.clients, anywhere)
	f.steady(t, cold, "any table of any shard")
	cold.stop()
	l := begin(t, f.members, f.clients, often)
	f.steady(t, l, "one table of each shard")
	f.restarts(t)
	f.outage(t, l)
	f.newShard(t)
	l.stop()
	for _, l := range []*load{cold, l} {
		assert.True(t, l.refused.Load() == 0, "%d statements had another error, the last: %v", l.refused.Load(), l.other.Load())
	}
	confirmed := int(cold.rows.Load() + l.rows.Load())
	for _, m := range f.members {
		m.stop(t)
	}
	rows, repeated := f.shards.twice(t, f.shards.names())
	f.report.add("rows looked at, ids that came twice", "%d, %d", rows, repeated)
	f.report.add("connections that clients lost", "%d", l.lost.Load())
	assert.True(t, repeated <= 0 && rows >= confirmed, "%d ids came twice; %d rows are there, %d were confirmed", repeated, rows, confirmed)
	f.control(t)
}

func (f *fleet) startAll(t *testing.T) {
	t.Helper()
	alone := f.members[0].start(t)
	f.report.add("start of one process, the others not yet there", "%v", short(alone))
	f.report.add("start of all others at once: least, median, most", "%s", spread(each(f.members[1:], func(m *member) time.Duration { return m.start(t) })))
	time.Sleep(f.span / 4)
	f.report.add("memory of an idle process: least, median, most", "%s", memory(t, f.members))
	before := f.allCPU(t)
	began := time.Now()
	time.Sleep(f.span)
	f.report.add("processor time of an idle process", "%.1f ms a second", float64((f.allCPU(t)-before).Milliseconds())/time.Since(began).Seconds()/float64(f.processes))
}

func (f *fleet) allCPU(t *testing.T) (all time.Duration) {
	t.Helper()
	for _, m := range f.members {
		all += m.cpu(t)
	}
	return all
}

// firstIDs has each process give its first id for each table. That of the first process begins series,
// for which all shards are asked.
func (f *fleet) firstIDs(t *testing.T) {
	t.Helper()
	insert := func(m *member, tables int) time.Duration {
		began := time.Now()
		for table := range tables {
			if err := m.insistent(t.Context(), (m.number+table)%f.shards.n, name(table)); err != nil {
				t.Error(err)
				break
			}
		}
		return time.Since(began)
	}
	asked, used := f.store.statements(t), f.allCPU(t)
	took := insert(f.members[0], f.begun)
	f.report.add(fmt.Sprintf("first id of %d tables, by one process: their series begin", f.begun), "%v, %d statements at the store, %v of processor time", short(took), f.store.statements(t)-asked, short(f.allCPU(t)-used))
	f.report.add("INSERTs of these that got 1467 at first and were tried again", "%d", f.members[0].again.Load())
	var series []string
	for _, table := range f.shards.names()[f.begun:] {
		series = append(series, "fleet_"+table)
	}
	f.store.use(t, "fleet_"+name(0), series)
	asked, used = f.store.statements(t), f.allCPU(t)
	others := each(f.members[1:], func(m *member) time.Duration { return insert(m, f.tables) })
	f.report.add("first id of each table by each of the others at once: least, median, most", "%s", spread(others))
	n := len(others) * f.tables
	f.report.add("for that", "%d ranges, %d statements at the store, %v of processor time", n, f.store.statements(t)-asked, short(f.allCPU(t)-used))
	f.report.add("memory with a range of each table: least, median, most", "%s", memory(t, f.members))
}

// openSessions opens them in one process after the other.
func (f *fleet) openSessions(t *testing.T) {
	t.Helper()
	var took []time.Duration
	var per []int64
	for _, m := range f.members {
		before := m.usage(t)
		d, with := m.sessions(t, f.sessions)
		took = append(took, d)
		per = append(per, (with.RSS-before.RSS)/int64(f.sessions))
	}
	f.report.add("sessions opened in each process in turn", "%d", f.sessions)
	f.report.add("until all had logged in: least, median, most", "%s", spread(took))
	f.report.add("memory of an idle session: least, median, most", "%s", sizes(per))
	f.report.add("memory once they have ended: least, median, most", "%s", memory(t, f.members))
}

func (f *fleet) steady(t *testing.T, l *load, where string) {
	t.Helper()
	time.Sleep(f.span / 2)
	rows, asked, used, began := l.rows.Load(), f.store.statements(t), f.allCPU(t), time.Now()
	time.Sleep(2 * f.span)
	took := time.Since(began).Seconds()
	given, statements := float64(l.rows.Load()-rows), float64(f.store.statements(t)-asked)
	f.report.add("INSERTs into "+where+": ids a second, all processes", "%.0f", given/took)
	f.report.add("statements at the store, a second and for 1,000 ids", "%.1f, %.1f", statements/took, statements/given*1000)
	f.report.add("processor time of all processes", "%.2f processors, %.1f us for a row", (f.allCPU(t)-used).Seconds()/took, float64((f.allCPU(t)-used).Microseconds())/given)
	f.report.add("memory while ids are given: least, median, most", "%s", memory(t, f.members))
}

// restarts kills a quarter of the processes, and restarts the others one after the other.
func (f *fleet) restarts(t *testing.T) {
	t.Helper()
	killed := max(1, f.processes/4)
	var crashed, rolled []time.Duration
	for _, m := range f.members[:killed] {
		m.crash(t)
		crashed = append(crashed, m.start(t))
	}
	for _, m := range f.members[killed:] {
		m.stop(t)
		rolled = append(rolled, m.start(t))
	}
	f.report.add("start behind SIGKILL, under load: least, median, most", "%s", spread(crashed))
	f.report.add("start in a rolling restart, under load: least, median, most", "%s", spread(rolled))
}

func (f *fleet) outage(t *testing.T, l *load) {
	t.Helper()
	time.Sleep(f.span / 2)
	rows, failed := l.rows.Load(), l.noIDs.Load()
	assert.Must(t, f.store.kill())
	time.Sleep(f.span)
	given, without := l.rows.Load()-rows, l.noIDs.Load()-failed
	began := time.Now()
	f.store.start(t)
	up := time.Now()
	for rows := l.rows.Load(); l.rows.Load() < rows+int64(f.processes*rowsPerStatement) && time.Since(up) < time.Minute; {
		time.Sleep(10 * time.Millisecond)
	}
	f.report.add("ids given while the store was away, statements refused with 1467", "%d in %v, %d", given, f.span, without)
	f.report.add("start of the store, and until ids flow again", "%v, %v", short(up.Sub(began)), short(time.Since(up)))
}

// newShard brings a shard to all processes by a reload.
func (f *fleet) newShard(t *testing.T) {
	t.Helper()
	f.shards.add(t)
	f.report.add("reload with one more shard, all processes at once: least, median, most", "%s", spread(each(f.members, func(m *member) time.Duration { return m.reload(t) })))
	for _, m := range f.members {
		assert.NoError(t, m.insistent(t.Context(), f.shards.n-1, name(0)), "the new shard through member", m.number)
	}
	var peak []int64
	for _, m := range f.members {
		peak = append(peak, m.usage(t).PeakRSS)
	}
	f.report.add("most memory that a process held since its restart: least, median, most", "%s", sizes(peak))
}

// control has two processes that do not share their store, nor see each other's shard: their ids
// come twice, and that must be seen.
func (f *fleet) control(t *testing.T) {
	t.Helper()
	const table = "tcontrol"
	for shard := range f.shards.n {
		exec(t, f.shards.server(shard), fmt.Sprintf("CREATE TABLE s%02d.%s "+columns, shard, table))
	}
	for shard := range 2 {
		m := newMember(t, shard, f.shards, "")
		m.start(t)
		assert.Must(t, m.insert(t.Context(), shard, table, rowsPerStatement))
		m.stop(t)
	}
	rows, repeated := f.shards.twice(t, []string{table})
	assert.True(t, rows == 2*rowsPerStatement && repeated == rowsPerStatement, "of %d rows %d are found to have the id of another", rows, repeated)
}

func TestMain(m *testing.M) { harness.Main(m) }

// report is the table that is printed.
type report struct{ lines strings.Builder }

func (r *report) add(what, format string, args ...any) {
	fmt.Fprintf(&r.lines, "| %s | %s |\n", what, fmt.Sprintf(format, args...))
}

func (r *report) print(t *testing.T) {
	t.Helper()
	t.Logf("\n| what | measured |\n|---|---|\n%s", r.lines.String())
}

// each runs do for all members at once, and returns how long each took.
func each(members []*member, do func(*member) time.Duration) []time.Duration {
	took := make([]time.Duration, len(members))
	var group sync.WaitGroup
	for i, m := range members {
		group.Go(func() { took[i] = do(m) })
	}
	group.Wait()
	return took
}

// spread words the least, the median and the greatest.
func spread(all []time.Duration) string {
	slices.Sort(all)
	return fmt.Sprintf("%v, %v, %v", short(all[0]), short(all[len(all)/2]), short(all[len(all)-1]))
}

func short(d time.Duration) time.Duration { return d.Round(time.Millisecond) }

// sizes words the least, the median and the greatest number of bytes.
func sizes(all []int64) string {
	slices.Sort(all)
	const kib = 1 << 10
	unit, name := float64(kib), "KiB"
	if all[0] > 1000*kib {
		unit, name = kib*kib, "MiB"
	}
	return fmt.Sprintf("%.1f, %.1f, %.1f %s", float64(all[0])/unit, float64(all[len(all)/2])/unit, float64(all[len(all)-1])/unit, name)
}

// memory words what members hold.
func memory(t *testing.T, members []*member) string {
	t.Helper()
	var all []int64
	for _, m := range members {
		all = append(all, m.usage(t).RSS)
	}
	return sizes(all)
}
