package redis

import "github.com/redis/go-redis/v9"

// Denied reports whether the server answered, and turned the user away: WRONGPASS of a wrong
// password, NOAUTH of none, NOPERM of a right that its ACL does not give.
func Denied(err error) bool {
	return redis.HasErrorPrefix(err, "WRONGPASS") || redis.HasErrorPrefix(err, "NOAUTH") || redis.HasErrorPrefix(err, "NOPERM")
}
