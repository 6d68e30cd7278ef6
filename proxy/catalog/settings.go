package catalog

import (
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"idproxy/proxy/wire"
)

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

// Probe asks for all of them at once. The schema's name comes in UTF-8, as servers have
// it, whatever character_set_results is.
func (a *Asker) Probe() (Probed, error) {
	if a.Plain {
		return a.plainProbe()
	}
	const sql = "SELECT @@sql_mode,@@character_set_client,HEX(DATABASE()),@@auto_increment_increment,@@max_allowed_packet,@@lower_case_table_names,LAST_INSERT_ID(),@@character_set_connection"
	answer, err := a.one(sql)
	if err != nil {
		return Probed{}, err
	}
	if len(answer.Rows) == 1 {
		if p, ok := readProbed(answer.Rows[0]); ok {
			return p, nil
		}
	}
	return Probed{}, errors.New("the server's answer about its settings is not understood")
}

func readProbed(row [][]byte) (p Probed, ok bool) {
	if len(row) != 8 {
		return p, false
	}
	p = Probed{SQLMode: string(row[0]), Charset: string(row[1]), Connection: string(row[7]), Folds: string(row[5]) != "0"}
	var errs [4]error
	p.Schema, errs[0] = hex.DecodeString(string(row[2]))
	p.Increment, errs[1] = strconv.ParseUint(string(row[3]), 10, 64)
	p.MaxPacket, errs[2] = strconv.ParseUint(string(row[4]), 10, 64)
	p.LastID, errs[3] = strconv.ParseUint(string(row[6]), 10, 64)
	return p, errors.Join(errs[:]...) == nil && p.Increment > 0
}

// SQLMode asks for sql_mode as it is.
func (a *Asker) SQLMode() (string, error) { return a.text("SELECT @@sql_mode") }

// FileCharset asks for the character set that files are in when LOAD DATA does not say.
func (a *Asker) FileCharset() (string, error) {
	charset, err := a.text("SELECT @@character_set_database")
	if err == nil && charset == "" {
		err = wire.ErrCut
	}
	return charset, err
}

func (a *Asker) text(sql string) (string, error) {
	row, err := a.Row(sql, 1)
	if err != nil {
		return "", err
	}
	return string(row[0]), nil
}

// Isolated asks whether transactions of the session read an older state than statements
// that write do. READ COMMITTED does not.
func (a *Asker) Isolated() (bool, error) {
	variable := "@@transaction_isolation"
	if mode := a.Settings().Mode; mode.MariaDB || mode.Version > 0 && mode.Version < 80000 {
		variable = "@@tx_isolation"
	}
	level, _, err := a.perhaps("SELECT " + variable)
	return !strings.HasPrefix(string(level), "READ-"), err
}

// InsertID is what SET insert_id asks for.
type InsertID struct {
	First     uint64 // 0: nothing
	Increment uint64
	Offset    uint64
	Last      uint64 // LAST_INSERT_ID()
}

// InsertID asks for that, and for how the ids behind it are spaced.
func (a *Asker) InsertID() (id InsertID, err error) {
	row, err := a.Row("SELECT @@insert_id,@@auto_increment_increment,@@auto_increment_offset,LAST_INSERT_ID()", 4)
	if err != nil {
		return id, err
	}
	for i, to := range []*uint64{&id.First, &id.Increment, &id.Offset, &id.Last} {
		if *to, err = strconv.ParseUint(string(row[i]), 10, 64); err != nil {
			return id, fmt.Errorf("insert_id: %w", err)
		}
	}
	return id, nil
}
