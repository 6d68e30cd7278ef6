package facts

// Probed are the settings of a session that ids depend on, as its server told them.
type Probed struct {
	SQLMode    string
	Charset    string // character_set_client
	Connection string // character_set_connection
	Schema     []byte // the default one, in UTF-8
	Increment  uint64 // auto_increment_increment, at least 1
	MaxPacket  uint64
	LastID     uint64
	Folds      bool // lower_case_table_names is not 0
}
