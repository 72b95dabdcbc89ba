// Package redis runs clients of Redis, as they come, against real servers over RESP: go-redis, rueidis,
// redis-py, ioredis and redis-cli. All of them tell the same story, on a plain port and with TLS and a token.
package redis
