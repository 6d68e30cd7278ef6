package relay

import "github.com/go-mysql-org/go-mysql/mysql"

// ReplyKind says how the server answers a command, which is what the relay
// must know to find the end of the answer.
type ReplyKind uint8

const (
	replyNone    ReplyKind = iota
	ReplyOne               // one OK, EOF or ERR packet
	replyRaw               // one packet whose first byte means nothing
	ReplyResult            // results: OK, result sets, LOCAL INFILE, as long as MORE_RESULTS says so
	ReplyPrepare           // PREPARE_OK with definitions, or ERR
	replyRows              // packets up to an EOF, or ERR
	ReplyAuth              // authentication packets up to OK or ERR
	replyOpaque            // a stream without end: both directions are copied blindly
)

// ComBulkExecute is MariaDB's COM_STMT_BULK_EXECUTE.
const ComBulkExecute = 0xfa

// ReplyOf returns the kind of reply to a command byte. An unknown command is
// answered with one ERR by every server that does not know it either.
func ReplyOf(command byte) ReplyKind {
	switch command {
	case mysql.COM_QUIT, mysql.COM_STMT_CLOSE, mysql.COM_STMT_SEND_LONG_DATA:
		return replyNone
	case mysql.COM_QUERY, mysql.COM_STMT_EXECUTE, ComBulkExecute, mysql.COM_PROCESS_INFO:
		return ReplyResult
	case mysql.COM_STMT_PREPARE:
		return ReplyPrepare
	case mysql.COM_STMT_FETCH, mysql.COM_FIELD_LIST:
		return replyRows
	case mysql.COM_STATISTICS:
		return replyRaw
	case mysql.COM_CHANGE_USER:
		return ReplyAuth
	case mysql.COM_BINLOG_DUMP, mysql.COM_BINLOG_DUMP_GTID, mysql.COM_TABLE_DUMP, mysql.COM_CLONE,
		mysql.COM_SUBSCRIBE_GROUP_REPLICATION_STREAM:
		return replyOpaque
	default:
		return ReplyOne
	}
}
