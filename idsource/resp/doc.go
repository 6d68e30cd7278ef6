// Package resp hands out ids to other programs over the Redis protocol, so that
// any Redis client can ask for them: redis-cli, go-redis, Jedis.
//
//	INCR key         the next id
//	INCRBY key n     n consecutive ids; the answer is the last of them, as
//	                 with a counter, so the first is the answer - n + 1
//	GET key          the last id given here since the start; nil: none yet
//
// Besides these it answers what clients send to get started: AUTH, HELLO,
// PING, ECHO, SELECT 0, CLIENT, COMMAND, INFO, RESET and QUIT. Anything else is
// an error. An id is never given twice, also when a reply is lost or the
// connection breaks: it is a gap then.
//
// A Server owns its listener and its connections. Each connection is one
// goroutine that answers in the order of the questions.
package resp
