package mysql

import (
	"errors"
	"slices"

	driver "github.com/go-sql-driver/mysql"
)

// denials are the numbers of errors by which a server turns an account away, or keeps a table from
// it: of a wrong password or database, a missing right, an expired password and a locked account.
// See the Server Error Message Reference of MySQL, and for 4151 MariaDB's.
var denials = []uint16{1044, 1045, 1142, 1143, 1227, 1698, 1820, 1862, 3118, 4151}

// Denied reports whether the server answered, and turned the account away.
func Denied(err error) bool {
	e, ok := errors.AsType[*driver.MySQLError](err)
	return ok && slices.Contains(denials, e.Number)
}
