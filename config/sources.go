package config

import (
	"fmt"
	"time"
)

// DefaultStore names the file store in ./idproxy-data that a source without a
// store uses. It is in Config.Stores only when some source uses it and no store
// of the file has that folder.
const DefaultStore = "(default)"

// Store is where sources keep their state. Exactly one of the kinds is set.
type Store struct {
	Pos   Pos         `yaml:"-"`
	Name  string      `yaml:"-"`
	MySQL *MySQLStore `yaml:"mysql"`
	File  *FileStore  `yaml:"file"`
	Etcd  *EtcdStore  `yaml:"etcd"`
	Redis *RedisStore `yaml:"redis"`

	ZooKeeper *ZooKeeperStore `yaml:"zookeeper"`
}

// StoreKind is a kind of stores, as the file names it, and what one keeps.
type StoreKind struct {
	Name     string
	Segments bool // positions of segments
	Workers  bool // worker numbers that processes lease, or use once
	Fence    bool // the fence of a fixed worker number

	is func(*Store) bool
}

var storeKinds = []StoreKind{
	{Name: "mysql", Segments: true, Workers: true, is: func(s *Store) bool { return s.MySQL != nil && s.MySQL.Table == nil }},
	{Name: "mysql", Segments: true, is: func(s *Store) bool { return s.MySQL != nil }},
	{Name: "file", Segments: true, Fence: true, is: func(s *Store) bool { return s.File != nil }},
	{Name: "redis", Workers: true, is: func(s *Store) bool { return s.Redis != nil }},
	{Name: "zookeeper", Workers: true, is: func(s *Store) bool { return s.ZooKeeper != nil }},
	{Name: "etcd", Segments: true, Workers: true, is: func(s *Store) bool { return s.Etcd != nil }},
}

// Kind is the kind of the store; without a name where the file gives it none.
func (s *Store) Kind() StoreKind {
	for _, k := range storeKinds {
		if k.is(s) { // the first one that fits
			return k
		}
	}
	return StoreKind{}
}

// KeepsSwitches reports whether the store keeps what modes of rules can be turned by.
func (s *Store) KeepsSwitches() bool {
	return s.File != nil || s.Etcd != nil || s.MySQL != nil && s.MySQL.DSN != "" && s.MySQL.Table == nil
}

// MySQLStore is a table in a MySQL or MariaDB server, or in several.
type MySQLStore struct {
	DSN   Secret      `yaml:"dsn,required" or:"dsns"` // user:password@tcp(host:port)/database
	DSNs  []Secret    `yaml:"dsns"`                   // several servers, any of which may be down; always in the same order
	Table *MySQLTable `yaml:"table"`                  // of a system that goes on giving ids of the same series; default: idproxy's own tables
}

// MySQLTable is the table of another system, which takes ranges from it, too.
type MySQLTable struct {
	Dialect string `yaml:"dialect,required" oneof:"leaf|tinyid"` // whose it is
	Name    string `yaml:"name"`                                 // with its database or without; default leaf_alloc or tiny_id_info
}

// FileStore is a folder of this host; ids from it are unique on this host only.
type FileStore struct {
	Dir string `yaml:"dir,required"`
}

// RedisStore is a Redis server, a group under Sentinel, or a cluster. It leases
// worker numbers.
type RedisStore struct {
	Addrs    []string  `yaml:"addrs,required"`
	Master   string    `yaml:"master"`  // name of the group, when addrs are Sentinels
	Cluster  bool      `yaml:"cluster"` // addrs are nodes of a cluster
	DB       uint64    `yaml:"db"`      // default 0
	Username string    `yaml:"username"`
	Password Secret    `yaml:"password"`
	TLS      *StoreTLS `yaml:"tls"` // default: no TLS
}

// StoreTLS is how a store is spoken to over TLS. The first three are paths of PEM files.
type StoreTLS struct {
	CA         string `yaml:"ca"`          // default: the system's
	Cert       string `yaml:"cert"`        // with Key: who we are; default: no certificate
	Key        string `yaml:"key"`         //
	ServerName string `yaml:"server_name"` // default: the host connected to
}

// EtcdStore is an etcd cluster.
type EtcdStore struct {
	Endpoints []string  `yaml:"endpoints,required"`
	Username  string    `yaml:"username"` // default: none, or whom the certificate names
	Password  Secret    `yaml:"password"`
	TLS       *StoreTLS `yaml:"tls"` // default: no TLS
}

// ZooKeeperStore is an ensemble of ZooKeeper. It leases worker numbers.
type ZooKeeperStore struct {
	Servers  []string  `yaml:"servers,required"`
	Username string    `yaml:"username"` // of the scheme digest; default: none
	Password Secret    `yaml:"password"`
	TLS      *StoreTLS `yaml:"tls"` // default: no TLS
}

// Source is one series of ids. Exactly one of the kinds is set.
type Source struct {
	Pos       Pos        `yaml:"-"`
	Name      string     `yaml:"-"`
	Segment   *Segment   `yaml:"segment"`
	Snowflake *Snowflake `yaml:"snowflake"`
	UUIDv7    *UUIDv7    `yaml:"uuidv7"`
	ObjectID  *ObjectID  `yaml:"objectid"`
}

// sourceKinds are the kinds of sources, as the file names them.
var sourceKinds = []string{"segment", "snowflake", "uuidv7", "objectid"}

// Kind is the word that the file has for the kind of source.
func (s *Source) Kind() string {
	switch {
	case s.Segment != nil:
		return "segment"
	case s.Snowflake != nil:
		return "snowflake"
	case s.UUIDv7 != nil:
		return "uuidv7"
	}
	return "objectid"
}

// StoreName is the store that the source needs; empty: none.
func (s *Source) StoreName() string {
	switch {
	case s.Segment != nil:
		return s.Segment.Store
	case s.Snowflake != nil && s.Snowflake.Workers != "":
		return s.Snowflake.Workers
	case s.Snowflake != nil:
		return s.Snowflake.Store
	}
	return ""
}

// Wide reports whether the source's ids are text or bytes, not numbers.
func (s *Source) Wide() bool { return s.UUIDv7 != nil || s.ObjectID != nil }

// ordered reports whether the source can be moved past an id.
func (s *Source) ordered() bool {
	if s.Snowflake != nil {
		l, ok := parseLayout(s.Snowflake.Layout)
		return !ok || l.ascends // a layout that cannot be read has its own error
	}
	return !s.Wide() && (s.Segment == nil || s.Segment.Scramble == nil)
}

// Segment takes ranges of ids from a store and hands them out one by one.
type Segment struct {
	Store      string    `yaml:"store"`                               // a mysql, etcd or file store; default [DefaultStore]
	Key        string    `yaml:"key"`                                 // the series' name in the store, with {schema} or {table} in it one for each table; default the source's name
	Start      uint64    `yaml:"start"`                               // lowest id, and a series that stands below is moved up to it; default 1
	StartGiven bool      `yaml:"-"`                                   // the file says start, maybe 1
	Last       uint64    `yaml:"last"`                                // greatest id; what columns hold above it is not the source's, and is not looked at; default: what the column holds
	Step       uint64    `yaml:"step"`                                // ids taken from the store at once, to begin with; default 1000
	MaxStep    uint64    `yaml:"max_step"`                            // bound of the step's growth; default 1000000, or step when that is more
	StepPolicy string    `yaml:"step_policy" oneof:"leaf|rate|fixed"` // leaf (default): x2 when a range lasts under 15 min, /2 over 30 min; rate: ranges last a minute
	Prefetch   Percent   `yaml:"prefetch"`                            // the next range is fetched once this share of the current one is used; default 10%
	Order      string    `yaml:"order" oneof:"global"`                // global: ids ascend in the order in which they are given, over all processes of the etcd store; default: within each process
	Scramble   *Scramble `yaml:"scramble"`                            // ids that do not tell how many there are; default: ids are the numbers of the series
}

// Scramble makes ids that look random out of the numbers of a segment.
type Scramble struct {
	Key  Secret `yaml:"key,required"` // 32, 48 or 64 hexadecimal digits; never changed once ids exist
	Bits uint64 `yaml:"bits"`         // that each id has, 48 to 63; default 63
}

// Format prints the bits without the key.
func (s Scramble) Format(f fmt.State, _ rune) { fmt.Fprintf(f, "{Key:%s Bits:%d}", s.Key, s.Bits) }

// What a Snowflake's ClockBack.Then can be.
const (
	ThenError  = "error"  // INSERTs fail until the clock has caught up
	ThenBorrow = "borrow" // ids go on from the last time seen, up to max_ahead before the clock
	ThenSwap   = "swap"   // take another worker number; needs workers
)

// Snowflake makes ids from time, a worker number and a sequence.
type Snowflake struct {
	Workers    string        `yaml:"workers"`    // redis, etcd, zookeeper or mysql store that leases worker numbers
	Pool       uint64        `yaml:"pool"`       // how many numbers serve makes in the store, and adds where they are fewer; default: idproxy worker add makes them
	PoolName   string        `yaml:"pool_name"`  // the pool in the store: the old name, where a source is renamed; default the source's name
	Disposable bool          `yaml:"disposable"` // with workers: each start of a process uses a number up; default false
	Worker     uint64        `yaml:"worker"`     // this process's number when Workers is empty
	Datacenter uint64        `yaml:"datacenter"` // only with a layout like 41/5+5/12, and then required
	Store      string        `yaml:"store"`      // file store of lock and fence of a fixed worker; default [DefaultStore]
	Layout     string        `yaml:"layout"`     // bits of time/worker/sequence or time/datacenter+worker/sequence; time may carry its unit (32s, 39x10ms); 41/12seq/10worker has another order; default 41/10/12
	Epoch      time.Time     `yaml:"epoch"`      // time zero of the ids; default 2020-01-01T00:00:00Z
	Sequence   string        `yaml:"sequence"`   // where the sequence starts in a new unit: continue (default), zero, random, random:N
	MaxAhead   time.Duration `yaml:"max_ahead"`  // how far ids may run ahead of the clock; default 3s
	ClockBack  ClockBack     `yaml:"clock_back"`
	Lease      *Lease        `yaml:"lease"` // with workers only
}

// ClockBack is what happens when the clock goes back.
type ClockBack struct {
	Hold time.Duration `yaml:"hold"`                           // up to here ids go on from the last time seen; default 15ms
	Then string        `yaml:"then" oneof:"error|borrow|swap"` // beyond it; default error, with workers swap
}

// What a Lease can be written as in one word.
const (
	LeaseStandard = "standard" // {heartbeat: 2s, reclaim: 20s}
	LeasePatient  = "patient"  // {heartbeat: 5s, reclaim: 5m}
)

// Lease is how a worker number is held: a name, or durations.
type Lease struct {
	Heartbeat time.Duration `yaml:"heartbeat"` // default 2s
	Reclaim   time.Duration `yaml:"reclaim"`   // silence after which another process may take the number; default 20s
}

// UUIDv7 makes time-ordered UUIDs, for columns of text or bytes. It has no settings and no store.
type UUIDv7 struct{}

// ObjectID makes the 12-byte ids of MongoDB, for columns of text or bytes. It has no settings and
// no store.
type ObjectID struct{}
