package monitor

import (
	"github.com/prometheus/client_golang/prometheus"
)

// metric is one name that Prometheus reads, and where its values are in a state.
type metric struct {
	name string
	desc *prometheus.Desc
	kind prometheus.ValueType
	from func(s *State, emit emit)
}

// emit gives one value, with those of the metric's labels in their order.
type emit func(value float64, labels ...string)

func gauge(name, help string, labels []string, from func(*State, emit)) metric {
	return metric{"idproxy_" + name, prometheus.NewDesc("idproxy_"+name, help, labels, nil), prometheus.GaugeValue, from}
}

func counter(name, help string, labels []string, from func(*State, emit)) metric {
	return metric{"idproxy_" + name, prometheus.NewDesc("idproxy_"+name, help, labels, nil), prometheus.CounterValue, from}
}

// metrics are all that the state gives. docs/monitoring.md lists them.
var metrics = []metric{
	gauge("build_info", "Always 1; the version is the label.", []string{"version"}, func(s *State, out emit) {
		out(1, s.Version)
	}),
	gauge("instance_info", "Always 1; the label is the name of this process.", []string{"name"}, func(s *State, out emit) {
		out(1, s.Instance)
	}),
	gauge("config_info", "Always 1; the label is the SHA-256 of the configuration in force.", []string{"hash"}, func(s *State, out emit) {
		out(1, s.Config.SHA256)
	}),
	gauge("config_loaded_timestamp_seconds", "When the configuration in force was read.", nil, func(s *State, out emit) {
		out(float64(s.Config.Loaded.Unix()))
	}),
	counter("config_reloads_total", "Reloads of the configuration.", []string{"result"}, func(s *State, out emit) {
		out(float64(s.Config.Reloads), "done")
		out(float64(s.Config.Failed), "failed")
	}),
	gauge("config_reload_failed", "1 when the last reload failed.", nil, func(s *State, out emit) { out(one(s.Config.Problem != "")) }),
	gauge("held_bytes", "Memory of the statements that sessions hold, which limits.held bounds.", nil, func(s *State, out emit) { out(float64(s.HeldBytes)) }),
	gauge("draining", "1 while idproxy lets its sessions go.", nil, func(s *State, out emit) { out(one(s.Draining)) }),
	gauge("drain_phase", "1 for how far it is in that.", []string{"phase"}, func(s *State, out emit) {
		for _, phase := range Phases() {
			out(one(s.Phase == phase), phase)
		}
	}),

	gauge("ready", "1 when a load balancer may send clients to the listener.", []string{"listener"}, func(s *State, out emit) {
		ready, _ := s.Ready("") // only a name can be wrong
		for _, l := range ready.Listeners {
			out(one(l.Ready), l.Name)
		}
	}),
	gauge("account_up", "0 when the listener's account cannot ask the server, which answers.", []string{"listener", "server"}, eachListener(func(l *Listener, out emit) {
		for _, v := range l.Servers {
			if l.Account != "" {
				out(one(v.Denied == ""), l.Name, v.Address)
			}
		}
	})),
	gauge("columns_unbegun", "Columns that got no first id when one was last asked for.", []string{"listener"}, eachListener(func(l *Listener, out emit) {
		out(float64(len(l.Unbegun)), l.Name)
	})),
	gauge("upstream_up", "1 when the listener's server answers; of several, one that can be used.", []string{"listener"}, eachListener(func(l *Listener, out emit) {
		out(one(l.Problem == ""), l.Name)
	})),
	gauge("upstream_server_up", "1 when the server answers; of several, when it does not refuse sessions either.", []string{"listener", "server"}, eachListener(func(l *Listener, out emit) {
		for _, v := range l.Servers {
			out(one(v.Problem == "" || v.ReadOnly), l.Name, v.Address)
		}
	})),
	gauge("upstream_server_read_only", "1 when the server is passed over because it is read-only.", []string{"listener", "server"}, eachListener(func(l *Listener, out emit) {
		for _, v := range l.Servers {
			out(one(v.ReadOnly), l.Name, v.Address)
		}
	})),
	gauge("upstream_server_used", "1 for the server that new sessions go to.", []string{"listener", "server"}, eachListener(func(l *Listener, out emit) {
		for _, v := range l.Servers {
			out(one(v.Used), l.Name, v.Address)
		}
	})),
	counter("upstream_switches_total", "How often new sessions began to go to another server.", []string{"listener"}, eachListener(func(l *Listener, out emit) {
		out(float64(l.Switches), l.Name)
	})),
	gauge("sessions", "Open sessions, by state.", []string{"listener", "state"}, eachListener(func(l *Listener, out emit) {
		out(float64(l.LoggingIn), l.Name, "login")
		out(float64(l.Sessions), l.Name, "open")
	})),
	counter("sessions_total", "Sessions that were accepted.", []string{"listener"}, eachListener(func(l *Listener, out emit) {
		out(float64(l.Accepted), l.Name)
	})),
	counter("login_timeouts_total", "Sessions that ended because their login took longer than limits.handshake.", []string{"listener"}, eachListener(func(l *Listener, out emit) {
		out(float64(l.Silent), l.Name)
	})),
	counter("limited_total", "What a limit refused or closed, by its key: sessions, logins and, of held, statements.", []string{"listener", "limit"}, eachListener(func(l *Listener, out emit) {
		for _, n := range l.Limited {
			out(float64(n.Count), l.Name, n.Limit)
		}
	})),
	counter("bytes_total", "Bytes of the MySQL protocol, before TLS, by where they came from.", []string{"listener", "from"}, eachListener(func(l *Listener, out emit) {
		out(float64(l.FromClient), l.Name, "client")
		out(float64(l.FromServer), l.Name, "server")
	})),
	counter("statements_total", "Statements, by what became of them and by their form.", []string{"listener", "kind", "form"}, eachListener(func(l *Listener, out emit) {
		for _, n := range l.Statements {
			out(float64(n.Count), l.Name, n.Kind, n.Form)
		}
	})),
	counter("hidden_questions_total", "Questions to the server that clients do not see.", []string{"listener", "kind"}, eachListener(func(l *Listener, out emit) {
		for _, q := range l.Questions {
			out(float64(q.Count), l.Name, q.Kind)
		}
	})),
	counter("hidden_questions_seconds_total", "Seconds that sessions waited for the answers.", []string{"listener", "kind"}, eachListener(func(l *Listener, out emit) {
		for _, q := range l.Questions {
			out(q.Time.Seconds(), l.Name, q.Kind)
		}
	})),
	counter("errors_total", "Errors that clients saw, by number and by who made them.", []string{"listener", "code", "side"}, eachListener(func(l *Listener, out emit) {
		for _, e := range l.Errors {
			out(float64(e.Count), l.Name, e.Code, e.Side)
		}
	})),

	counter("rule_ids_total", "Ids that were drawn for a rule.", []string{"rule"}, eachRule(func(r *Rule, out emit) {
		out(float64(r.IDs), r.Name())
	})),
	counter("rule_observed_total", "Statements that a rule with mode observe would have filled or refused.", []string{"rule"}, eachRule(func(r *Rule, out emit) {
		out(float64(r.Observed), r.Name())
	})),
	counter("refusals_total", "Statements that were refused, by rule, if it is a single one, and reason.", []string{"rule", "reason"}, func(s *State, out emit) {
		for _, n := range s.Refused {
			out(float64(n.Count), "", n.Reason)
		}
		eachRule(func(r *Rule, out emit) {
			for _, n := range r.Refused {
				out(float64(n.Count), r.Name(), n.Reason)
			}
		})(s, out)
	}),

	gauge("source_ready", "1 when the source can issue ids now.", []string{"source"}, eachSource(func(o *Source, out emit) {
		out(one(o.Problem == ""), o.Name)
	})),
	counter("ids_issued_total", "Ids that the source gave.", []string{"source"}, eachSource(func(o *Source, out emit) {
		out(float64(o.Issued), o.Name)
	})),
	gauge("source_ids_left", "Ids in memory, of the series that runs dry first.", []string{"source"}, eachSegment(func(o *Source, out emit) {
		out(float64(o.Segment.Left), o.Name)
	})),
	gauge("source_seconds_left", "Seconds until the ids in memory are gone at the present rate; absent while none are drawn.", []string{"source"}, eachSegment(func(o *Source, out emit) {
		if o.Segment.Lasts != nil {
			out(o.Segment.Lasts.Seconds(), o.Name)
		}
	})),
	gauge("source_years_left", "Years until the greatest id, or the last timestamp of the layout.", []string{"source"}, func(s *State, out emit) {
		for i := range s.Sources {
			switch o := &s.Sources[i]; {
			case o.Segment != nil && o.Segment.YearsLeft != nil:
				out(*o.Segment.YearsLeft, o.Name)
			case o.Snowflake != nil:
				out(o.Snowflake.Ends.Sub(s.Time).Hours()/24/365.25, o.Name)
			}
		}
	}),
	gauge("source_range_size", "Ids of the newest range.", []string{"source"}, eachSegment(func(o *Source, out emit) {
		out(float64(o.Segment.RangeSize), o.Name)
	})),
	counter("source_fetches_total", "Ranges that were asked for.", []string{"source", "result"}, eachSegment(func(o *Source, out emit) {
		out(float64(o.Segment.Fetches), o.Name, "done")
		out(float64(o.Segment.Failed), o.Name, "failed")
	})),
	gauge("order_leads", "1 when this process gives the ids of a source in one order, 0 when it asks another one.", []string{"source"}, eachOrder(func(o *Source, out emit) {
		out(one(o.Order.Leads), o.Name)
	})),
	gauge("order_led", "1 when it is known which process gives the ids of a source in one order.", []string{"source"}, eachOrder(func(o *Source, out emit) {
		out(one(o.Order.Leader != ""), o.Name)
	})),
	gauge("order_term", "Grows with each change of the process that gives the ids of a source in one order.", []string{"source"}, eachOrder(func(o *Source, out emit) {
		out(float64(o.Order.Term), o.Name)
	})),
	counter("order_passed_total", "Ids of a source in one order that another process gave to this one.", []string{"source"}, eachOrder(func(o *Source, out emit) {
		out(float64(o.Order.Passed), o.Name)
	})),
	gauge("worker_number", "The worker number; absent while there is none.", []string{"source"}, eachSnowflake(func(o *Source, out emit) {
		if o.Snowflake.Worker != nil {
			out(float64(*o.Snowflake.Worker), o.Name)
		}
	})),
	gauge("worker_fence_seconds", "Seconds until the right to make ids ends, unless it is renewed.", []string{"source"}, eachSnowflake(func(o *Source, out emit) {
		out(o.Snowflake.Fence.Seconds(), o.Name)
	})),
	gauge("worker_ahead_seconds", "Seconds that ids are ahead of the clock.", []string{"source"}, eachSnowflake(func(o *Source, out emit) {
		out(o.Snowflake.Ahead.Seconds(), o.Name)
	})),
	counter("worker_swaps_total", "Worker numbers that were taken after the first.", []string{"source"}, eachSnowflake(func(o *Source, out emit) {
		out(float64(o.Snowflake.Swaps), o.Name)
	})),

	gauge("store_up", "1 when the store answered last time.", []string{"store"}, func(s *State, out emit) {
		for i := range s.Stores {
			out(one(s.Stores[i].Up), s.Stores[i].Name)
		}
	}),
	gauge("store_seconds", "Seconds that the store's last answer took.", []string{"store"}, func(s *State, out emit) {
		for i := range s.Stores {
			out(s.Stores[i].Took.Seconds(), s.Stores[i].Name)
		}
	}),
	gauge("store_problem", "1 for the class of the store's last error; absent when it answered.", []string{"store", "class"}, func(s *State, out emit) {
		for i := range s.Stores {
			if c := s.Stores[i].Class; c != "" {
				out(1, s.Stores[i].Name, c)
			}
		}
	}),
	gauge("certificate_seconds_left", "Seconds until a certificate ends that the configuration names.", []string{"certificate"}, func(s *State, out emit) {
		for i := range s.Certificates {
			out(s.Certificates[i].Ends.Sub(s.Time).Seconds(), s.Certificates[i].Name)
		}
	}),
	gauge("open_files", "Open descriptors of the process; this one is there when none is free, too.", nil, func(s *State, out emit) {
		out(float64(s.Files.Open))
	}),
	gauge("open_files_limit", "How many there may be.", nil, func(s *State, out emit) { out(float64(s.Files.Limit)) }),
}

// MetricNames returns the names of the metrics that the state gives.
func MetricNames() (names []string) {
	for _, m := range metrics {
		names = append(names, m.name)
	}
	return names
}

func one(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

func eachListener(f func(*Listener, emit)) func(*State, emit) {
	return func(s *State, out emit) {
		for i := range s.Listeners {
			f(&s.Listeners[i], out)
		}
	}
}

// eachRule calls f for each rule's name once: several rules of one name count together.
func eachRule(f func(*Rule, emit)) func(*State, emit) {
	return func(s *State, out emit) {
		seen := map[string]bool{}
		for i := range s.Rules {
			if r := &s.Rules[i]; !seen[r.Name()] {
				seen[r.Name()] = true
				f(r, out)
			}
		}
	}
}

func eachSource(f func(*Source, emit)) func(*State, emit) {
	return func(s *State, out emit) {
		for i := range s.Sources {
			f(&s.Sources[i], out)
		}
	}
}

func eachSegment(f func(*Source, emit)) func(*State, emit) {
	return eachSource(func(o *Source, out emit) {
		if o.Segment != nil {
			f(o, out)
		}
	})
}

func eachOrder(f func(*Source, emit)) func(*State, emit) {
	return eachSource(func(o *Source, out emit) {
		if o.Order != nil {
			f(o, out)
		}
	})
}

func eachSnowflake(f func(*Source, emit)) func(*State, emit) {
	return eachSource(func(o *Source, out emit) {
		if o.Snowflake != nil {
			f(o, out)
		}
	})
}

// Name is how metrics call a rule: schema.table.column, as its pattern says.
func (r *Rule) Name() string { return r.Table + "." + r.Column }

// collector makes metrics of the state at each scrape. It implements prometheus.Collector.
type collector struct{ program Program }

// Describe implements prometheus.Collector.
func (c *collector) Describe(ch chan<- *prometheus.Desc) {
	for _, m := range metrics {
		ch <- m.desc
	}
}

// Collect implements prometheus.Collector.
func (c *collector) Collect(ch chan<- prometheus.Metric) {
	state := c.program.State()
	for _, m := range metrics {
		m.from(&state, func(value float64, labels ...string) {
			made, err := prometheus.NewConstMetric(m.desc, m.kind, value, labels...)
			if err != nil {
				made = prometheus.NewInvalidMetric(m.desc, err)
			}
			ch <- made
		})
	}
}
