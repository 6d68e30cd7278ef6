package config

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"idproxy/integration/assert"
)

const diffBase = `
listeners:
  - {name: a, listen: ":1", upstream: "h:1", tls: {cert: c.pem, key: k.pem}}
  - {name: b, listen: ":2", upstream: "h:2", account: {user: u, password: old}}
stores:
  main: {mysql: {dsn: "u:p@tcp(h:1)/d"}}
sources:
  ids: {segment: {store: main}}
  flake: {snowflake: {worker: 1}}
rules:
  - {table: shop.orders, column: id, source: ids}
ids: {redis: {listen: ":6399", users: {app: {password: old}}}}
`

func TestDiff(t *testing.T) {
	for _, tt := range []struct {
		name, old, new string // the text to replace in diffBase, and by what
		want           []string
		restart        bool
	}{
		{name: "nothing", old: "", new: ""},
		{name: "a switch", old: "source: ids}", new: "source: ids, mode: {switch: m}}", want: []string{"rules.shop.orders.id.mode: enforce, then {switch: m}"}},
		{name: "only places", old: "stores:", new: "# a comment\n\nstores:"},
		{name: "a default written out", old: "store: main", new: "store: main, step: 1000, key: ids"},
		{name: "rules", old: "shop.orders", new: "shop.lines", want: []string{"rules.shop.orders.id: removed", "rules.shop.lines.id: added"}},
		{name: "live keys", old: "rules:", new: "limits: {sessions: 5}\ntcp: {keepalive: 1m}\nlog: {level: debug, trace: {user: app}}\nshutdown_timeout: 1s\ndrain: {delay: 1ms, spread: 1ms}\nrules:", want: []string{"limits.sessions: 10000, then 5", "limits.logins: 5000, then 2", "tcp.keepalive: 30s, then 1m0s", "shutdown_timeout: 30s, then 1s", "drain.delay: 0s, then 1ms", "drain.spread: 0s, then 1ms", "log.level: info, then debug", "log.trace: added"}},
		{name: "new store and source", old: "sources:", new: "  other: {file: {dir: d}}\nsources:\n  more: {segment: {store: other}}", want: []string{"stores.other: added", "sources.more: added"}},
		{name: "instance", old: "rules:", new: "instance: b\nrules:", want: []string{"instance: none, then b"}, restart: true},
		{name: "engine", old: "rules:", new: "engine: goroutines\nrules:", want: []string{"engine: loops, then goroutines"}, restart: true},
		{name: "format of the log", old: "rules:", new: "log: {format: json}\nrules:", want: []string{"log.format: text, then json"}, restart: true},
		{name: "live keys of a listener", old: `upstream: "h:2"`, new: `upstream: "h:2", allow: [10.0.0.0/8], limits: {sessions: 3}`, want: []string{"listeners.b.allow: none, then [10.0.0.0/8]", "listeners.b.limits.sessions: 0, then 3"}},
		{name: "order of sources", old: "  ids: {segment: {store: main}}\n  flake: {snowflake: {worker: 1}}", new: "  flake: {snowflake: {worker: 1}}\n  ids: {segment: {store: main}}"},
		{name: "listen", old: `":1"`, new: `":3"`, want: []string{"listeners.a.listen: :1, then :3"}},
		{name: "upstream", old: `h:2`, new: `h:3`, want: []string{"listeners.b.upstream: h:2, then h:3"}},
		{name: "certificate", old: "c.pem", new: "d.pem", want: []string{"listeners.a.tls.cert: c.pem, then d.pem"}},
		{name: "no more TLS", old: ", tls: {cert: c.pem, key: k.pem}", new: "", want: []string{"listeners.a.tls: removed"}},
		{name: "upstreams", old: `upstream: "h:2"`, new: `upstreams: ["h:2", "h:3"], writable: true`, want: []string{"listeners.b.upstream: h:2, then none", "listeners.b.upstreams: none, then [h:2 h:3]", "listeners.b.writable: false, then true"}},
		{name: "upstream TLS", old: `"h:2"`, new: `"h:2", upstream_tls: {mode: required}`, want: []string{"listeners.b.upstream_tls.mode: as_client, then required"}},
		{name: "password", old: "account: {user: u, password: old}", new: "account: {user: u, password: new}", want: []string{"listeners.b.account.password: changed"}},
		{name: "user", old: "user: u, password: old", new: "user: v, password: old", want: []string{"listeners.b.account.user: u, then v"}},
		{name: "listener renamed", old: "name: a", new: "name: c", want: []string{"listeners.a: removed", "listeners.c: added"}},
		{name: "dsn", old: "(h:1)/d", new: "(h:9)/d", want: []string{"stores.main.mysql.dsn: changed"}},
		{name: "kind of store", old: `{mysql: {dsn: "u:p@tcp(h:1)/d"}}`, new: "{file: {dir: d}}", want: []string{"stores.main.mysql: removed", "stores.main.file: added"}},
		{name: "step", old: "store: main", new: "store: main, step: 10", want: []string{"sources.ids.segment.step: 1000, then 10"}},
		{name: "worker", old: "worker: 1", new: "worker: 2", want: []string{"sources.flake.snowflake.worker: 1, then 2"}},
		{name: "epoch", old: "worker: 1", new: "worker: 1, epoch: 2021-01-01", want: []string{"sources.flake.snowflake.epoch: 2020-01-01T00:00:00Z, then 2021-01-01T00:00:00Z"}},
		{name: "source removed", old: "  flake: {snowflake: {worker: 1}}\n", new: "", want: []string{"stores.(default): removed", "sources.flake: removed"}},
		{name: "user added", old: "users: {", new: "users: {more: {password: x}, ", want: []string{"ids.redis.users.more: added"}, restart: true},
		{name: "password of a user", old: "app: {password: old}", new: "app: {password: new}", want: []string{"ids.redis.users.app.password: changed"}, restart: true},
		{name: "no more ids", old: "ids: {redis: {listen: \":6399\", users: {app: {password: old}}}}", new: "", want: []string{"ids: removed"}, restart: true},
		{
			name: "several", old: "store: main}}\n  flake: {snowflake: {worker: 1}}", new: "store: main, step: 7, start: 9}}\n  flake: {snowflake: {worker: 2}}",
			want: []string{"sources.ids.segment.start: 1, then 9", "sources.ids.segment.step: 1000, then 7", "sources.flake.snowflake.worker: 1, then 2"},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			assert.MustTrue(t, strings.Contains(diffBase, tt.old), "%q is not in the file", tt.old)
			old, now := parseOK(t, diffBase), parseOK(t, strings.Replace(diffBase, tt.old, tt.new, 1))
			changes := Diff(old, now)
			var got []string
			for _, c := range changes {
				got = append(got, c.String())
			}
			assert.NoDiff(t, "differs", cmp.Diff(tt.want, got))
			for _, path := range got {
				assert.True(t, !strings.Contains(path, "old") && !strings.Contains(path, "new"), "the value of a secret is in %s", path)
			}
			restart := NeedRestart(old, now, changes)
			assert.True(t, (len(restart) > 0) == tt.restart, "%v need a restart", restart)
		})
	}
}

const handoverBase = `
listeners:
  - {name: a, listen: ":1", upstream: "h:1"}
  - {name: b, listen: ":2", upstream: "h:2"}
stores:
  main: {mysql: {dsn: "u:p@tcp(h:1)/d"}}
  more: {file: {dir: d}}
sources:
  ids: {segment: {store: main}}
  flake: {snowflake: {worker: 1, store: more}}
rules:
  - {table: shop.orders, column: id, source: flake}
  - {table: "*.lines", column: id, source: flake}
  - {table: "shop.*", column: id, source: ids}
  - {table: own.t, column: id, source: ids, listeners: [a]}
  - {table: own.t, column: id, source: flake, listeners: [b]}
`

func TestDiffHandover(t *testing.T) {
	for _, tt := range []struct {
		name, old, new string // the text to replace in handoverBase, and by what
		want           []string
	}{
		{name: "nothing", old: "", new: ""},
		{name: "what is not about ids", old: "rules:", new: "engine: goroutines\nlog: {format: json}\nadmin: {listen: \"127.0.0.1:9\"}\nids: {redis: {listen: \":6399\"}}\nlimits: {sessions: 5}\nrules:"},
		{name: "listen", old: `":1"`, new: `":3"`},
		{name: "upstream", old: `"h:1"}`, new: `"h:3"}`},
		{name: "new ones", old: "rules:", new: "  last: {uuidv7: {}}\nrules:\n  - {table: new.t, column: id, source: last}\n  - {table: shop.orders, column: other, source: last}"},
		{name: "no rule", old: `  - {table: "shop.*", column: id, source: ids}` + "\n", new: ""},
		{name: "rules that do not meet, in another order", old: "  - {table: own.t, column: id, source: ids, listeners: [a]}\n  - {table: own.t, column: id, source: flake, listeners: [b]}", new: "  - {table: own.t, column: id, source: flake, listeners: [b]}\n  - {table: own.t, column: id, source: ids, listeners: [a]}"},
		{name: "other words of a rule", old: "source: ids}", new: "source: ids, explicit: reject, mode: observe}"},
		{name: "dsn", old: "(h:1)/d", new: "(h:9)/d", want: []string{"stores.main.mysql.dsn (changed)"}},
		{name: "folder", old: "dir: d", new: "dir: e", want: []string{"stores.more.file.dir (changed)"}},
		{name: "key", old: "store: main", new: "store: main, key: k", want: []string{"sources.ids.segment.key (changed)"}},
		{name: "store of a fixed worker", old: "worker: 1, store: more", new: "worker: 1", want: []string{"sources.flake.snowflake.store (changed)"}},
		{name: "another source", old: "shop.orders, column: id, source: flake", new: "shop.orders, column: id, source: ids", want: []string{"rules.shop.orders.id (source flake, then ids)"}},
		{name: "another source on a listener", old: "source: flake, listeners: [b]", new: "source: ids, listeners: [b]", want: []string{"rules.own.t.id (source flake, then ids)"}},
		{name: "lost to a rule in front", old: "rules:", new: "rules:\n  - {table: SHOP.bills, column: ID, source: flake}", want: []string{"rules.shop.*.id (source ids, then flake)"}},
		{name: "lost to a rule behind", old: "  - {table: shop.orders, column: id, source: flake}\n", new: "", want: []string{"rules.shop.orders.id (source flake, then ids)"}},
		{name: "wildcards in another order", old: "  - {table: \"*.lines\", column: id, source: flake}\n  - {table: \"shop.*\", column: id, source: ids}", new: "  - {table: \"shop.*\", column: id, source: ids}\n  - {table: \"*.lines\", column: id, source: flake}", want: []string{"rules.*.lines.id (source flake, then ids)"}},
		{name: "a listener of another server", old: `  - {name: b, listen: ":2", upstream: "h:2"}`, new: `  - {name: b, listen: ":2", upstream: "h:9"}`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			assert.MustTrue(t, strings.Contains(handoverBase, tt.old), "%q is not in the file", tt.old)
			got := diffHandover(parseOK(t, handoverBase), parseOK(t, strings.Replace(handoverBase, tt.old, tt.new, 1)))
			assert.NoDiff(t, "differs", cmp.Diff(tt.want, got))
		})
	}
}

// TestDiffHandoverNames: a source or a listener under another name is the same change as another source.
func TestDiffHandoverNames(t *testing.T) {
	old := parseOK(t, handoverBase)
	renamed := parseOK(t, strings.ReplaceAll(strings.ReplaceAll(handoverBase, "source: ids", "source: again"), "ids: {seg", "again: {seg"))
	want := []string{"rules.shop.*.id (source ids, then again)", "rules.own.t.id (source ids, then again)"}
	assert.NoDiff(t, "a source", cmp.Diff(want, diffHandover(old, renamed)))
	renamed = parseOK(t, strings.NewReplacer("name: b", "name: c", "source: flake, listeners: [b]", "source: ids, listeners: [c]").Replace(handoverBase))
	assert.NoDiff(t, "a listener", cmp.Diff([]string{"rules.own.t.id (source flake, then ids)"}, diffHandover(old, renamed)))
	ordered := *old
	ordered.Order = &Order{}
	assert.NoDiff(t, "an order", cmp.Diff([]string{"order (added)"}, diffHandover(old, &ordered)))
}
