package config

import "idproxy/pattern"

// What the words of a Rule can be.
const (
	ExplicitKeep       = "keep"
	ExplicitReject     = "reject"
	ExplicitAdvance    = "advance"
	UnsupportedReject  = "reject"
	UnsupportedForward = "forward"
	LastIDServer       = "server"
	LastIDPacket       = "packet"
	ModeEnforce        = "enforce"
	ModeObserve        = "observe"
	ModeUnknown        = "unknown" // of a switch whose store has not answered yet
	GeneMod            = "mod"
	GeneCRC32          = "crc32"
)

// Rule says which column of which tables gets its ids from which source. A
// table may have rules for several columns; the first of them whose ids are
// numbers feeds the last insert id.
type Rule struct {
	Pos          Pos      `yaml:"-"`
	Schema       string   `yaml:"-"`                                    // left of the dot of table; * and ? are wildcards
	Table        string   `yaml:"table,required"`                       // right of the dot; * and ? are wildcards
	Column       string   `yaml:"column,required"`                      // the id column
	Source       string   `yaml:"source,required"`                      // name of a source
	Explicit     string   `yaml:"explicit" oneof:"keep|reject|advance"` // an id the application wrote itself; default keep
	Unsupported  string   `yaml:"unsupported" oneof:"reject|forward"`   // a statement that cannot be given ids; default reject
	LastInsertID string   `yaml:"last_insert_id" oneof:"server|packet"` // packet: plain numbers, for a server without LAST_INSERT_ID(expr); default server
	Mode         Mode     `yaml:"mode"`                                 // enforce, observe, or a switch that says which; default enforce
	Gene         *Gene    `yaml:"gene"`                                 // default: none
	Listeners    []string `yaml:"listeners"`                            // names; default (empty): all
}

// Mode is what a rule does: a word, or what a switch says in the store of the rule's source. Of a
// switch the word is empty until someone has asked the store.
type Mode struct {
	Word   string `yaml:"-"`               // ModeEnforce, or ModeObserve: log and count, forward unchanged
	Switch string `yaml:"switch,required"` // its name; empty: there is none
}

// String is the mode as the file writes it.
func (m Mode) String() string {
	if m.Switch != "" {
		return "{switch: " + m.Switch + "}"
	}
	return m.Word
}

// String is schema.table.column, as messages name a rule.
func (r *Rule) String() string { return r.Schema + "." + r.Table + "." + r.Column }

// Pattern is what tables the rule is for.
func (r *Rule) Pattern() pattern.Table { return pattern.Table{Schema: r.Schema, Name: r.Table} }

// Wild reports whether the rule has wildcards: it may match any number of tables.
func (r *Rule) Wild() bool { return !r.Pattern().Exact() }

// GeneBits returns by source the bits of the widest gene that its ids get.
func (c *Config) GeneBits() map[string]uint64 {
	bits := map[string]uint64{}
	for i := range c.Rules {
		if r := &c.Rules[i]; r.Gene != nil {
			bits[r.Source] = max(bits[r.Source], r.Gene.Bits)
		}
	}
	return bits
}

// On reports whether the rule holds for the sessions of a listener.
func (r *Rule) On(listener string) bool {
	if len(r.Listeners) == 0 {
		return true
	}
	for _, l := range r.Listeners {
		if l == listener {
			return true
		}
	}
	return false
}

// Gene puts the low bits of another column of the row into the id, so that both
// land on the same shard.
type Gene struct {
	Column string `yaml:"column,required"`      // the key, a column of the same row
	Bits   uint64 `yaml:"bits,required"`        // 1 to 16
	By     string `yaml:"by" oneof:"mod|crc32"` // mod (default): id % 2^bits = value % 2^bits; crc32: for strings
}
