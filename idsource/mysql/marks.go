package mysql

import "context"

// What the servers of a group remember of each other.
const (
	selectMarks = "SELECT server, next_id FROM idproxy_mark WHERE biz_tag = ?"
	raiseMark   = "INSERT INTO idproxy_mark (biz_tag, server, next_id) VALUES (?, ?, ?) " +
		"ON DUPLICATE KEY UPDATE next_id = GREATEST(next_id, ?)"
	dropMarks = "DELETE FROM idproxy_mark WHERE biz_tag = ?"
)

// readMarks returns where the server saw the others of its group stand, by their numbers.
func readMarks(ctx context.Context, db querier, key string) (map[int]uint64, error) {
	rows, err := db.QueryContext(ctx, selectMarks, key)
	if err != nil {
		return nil, err
	}
	defer rows.Close() //nolint:errcheck // Err below says it
	marks := map[int]uint64{}
	for rows.Next() {
		var server int
		var next uint64
		if err := rows.Scan(&server, &next); err != nil {
			return nil, err
		}
		marks[server] = next
	}
	return marks, rows.Err()
}
