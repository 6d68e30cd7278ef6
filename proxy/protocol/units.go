package protocol

import (
	"encoding/binary"

	"idproxy/proxy/wire"
	"idproxy/rewriter"
)

// Units is the result that a bulk execution gives for each of its rows: the id
// and the number of affected rows, in place of an OK packet (MariaDB 11.5). The
// server knows of no id in a column without AUTO_INCREMENT; a native one shows
// the last id that the row generated, and 0 for one that it brought.
//
// The rows are held until all are there: a trigger that writes rows adds results
// of its own, and then none can be told from the others.
type Units struct {
	result int      // which result of the command it is, from 0
	update bool     // ON DUPLICATE KEY UPDATE: a row that was updated shows 0
	IDs    []uint64 // by row
	Used   int      // ids used, while ids is filled
	held   []byte   // whole frames
}

// A row of the result: header, OK byte, NULL bitmap, id and affected rows.
const (
	unitID       = wire.HeaderLen + 2
	unitAffected = unitID + 8
	unitLen      = unitAffected + 8
)

// stored returns how many rows went in or were changed; 1 when the results are not
// one for each row.
func (u *Units) stored() (n int) {
	if len(u.held) != unitLen*len(u.IDs) {
		return 1
	}
	for i := range u.IDs {
		if binary.LittleEndian.Uint64(u.held[i*unitLen+unitAffected:]) > 0 {
			n++
		}
	}
	return n
}

// release returns the rows with their ids.
func (u *Units) release() []byte {
	held := u.held
	u.held = nil
	if len(held) != unitLen*len(u.IDs) {
		return held
	}
	for i, id := range u.IDs {
		row := held[i*unitLen:]
		if wire.PayloadLen(row) != unitLen-wire.HeaderLen {
			return held
		}
		if u.update && binary.LittleEndian.Uint64(row[unitAffected:]) == 2 {
			id = 0
		}
		if binary.LittleEndian.Uint64(row[unitID:]) == 0 {
			binary.LittleEndian.PutUint64(row[unitID:], id)
		}
	}
	return held
}

// awaits reports whether a packet of a result is one of the rows. They are held as long
// as they may be those that are awaited.
func (u *Units) awaits(result, row int, payload []byte) bool {
	if result != u.result || row <= 0 || payload[0] != wire.OKByte {
		return false
	}
	if len(u.held) >= unitLen*len(u.IDs) { // one too many
		u.IDs = nil
		return false
	}
	return true
}

// Expects says where in the reply the rows are. They tell as little of the last
// insert id as rows that RETURNING sends.
func (u *Units) Expects(inserts []Expect, plan *rewriter.Plan) {
	u.update = plan.Update
	if plan.Returning {
		u.result = 1
	}
	inserts[0].Returning = true
}
