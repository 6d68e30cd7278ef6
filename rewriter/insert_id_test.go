package rewriter

import (
	"testing"

	"idproxy/integration/assert"
)

func TestReadInsertID(t *testing.T) {
	for _, c := range []struct {
		text string
		id   uint64 // 0: it is something else
	}{
		{"SET insert_id = 5", 5},
		{"SET INSERT_ID=500", 500},
		{"set insert_id:=5;", 5},
		{" /* c */ SET session insert_id = 05 ; ", 5},
		{"SET LOCAL insert_id = 5", 5},
		{"SET @@insert_id = 5", 5},
		{"SET @@session.insert_id = 5", 5},
		{"SET @@LOCAL . insert_id = 9223372036854775807", 9223372036854775807},

		{"SET insert_id = 0", 0},
		{"SET insert_id = 9223372036854775808", 0},
		{"SET insert_id = 18446744073709551616", 0},
		{"SET insert_id = -5", 0},
		{"SET insert_id = '5'", 0},
		{"SET insert_id = 5.0", 0},
		{"SET insert_id = 5e1", 0},
		{"SET insert_id = 0x5", 0},
		{"SET insert_id = 5 + 1", 0},
		{"SET insert_id = 5, @a = 1", 0},
		{"SET @a = 1, insert_id = 5", 0},
		{"SET insert_id = @a", 0},
		{"SET insert_id = DEFAULT", 0},
		{"SET insert_id = 5; SELECT 1", 0},
		{"SET insert_id = 5 /*! + 1 */", 0},
		{"SET insert_id = 5 -- x\n, @a = 1", 0},
		{"SET insert_id : = 5", 0},
		{"SET insert_id : 5", 0},
		{"SET insert_id 5", 0},
		{"SET insert_id", 0},
		{"SET insert_id =", 0},
		{"SET GLOBAL insert_id = 5", 0},
		{"SET @@global.insert_id = 5", 0},
		{"SET @@session insert_id = 5", 0},
		{"SET session.insert_id = 5", 0},
		{"SET @insert_id = 5", 0},
		{"SET @ @insert_id = 5", 0},
		{"SET @@ insert_id = 5", 0},
		{"SET @", 0},
		{"SET last_insert_id = 5", 0},
		{"SET", 0},
		{"SELECT @@insert_id = 5", 0},
		{"", 0},
	} {
		assert.Equal(t, c.text, ReadInsertID([]byte(c.text)), c.id)
	}
}
