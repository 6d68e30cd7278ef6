// Package resp hands out ids to other programs over the Redis protocol, so that
// any Redis client can ask for them: redis-cli, go-redis, Jedis.
//
//	INCR key                 the next id
//	INCRBY key n             n consecutive ids; the answer is the last of them, as
//	                         with a counter, so the first is the answer - n + 1
//	IDS.NEXT key [n]         a list of ids, also of those that are no numbers
//	GET key, MGET key ...    the last id given here since the start; nil: none yet
//	IDS.CREATE key [start] [step]  makes a series of numbers
//	IDS.SET key next         has a series go on at next or above
//
// Besides these it answers what clients send to get started: AUTH, HELLO,
// PING, ECHO, SELECT 0, CLIENT, COMMAND, CONFIG, INFO, RESET and QUIT. Anything
// else is an error. It speaks versions 2 and 3 of the protocol, with or without
// TLS. An id is never given twice, also when a reply is lost or the
// connection breaks: it is a gap then.
//
// A Server owns its listener and its connections. Each connection is one
// goroutine that answers in the order of the questions.
package resp
