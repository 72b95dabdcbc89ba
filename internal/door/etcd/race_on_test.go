//go:build race

package etcd

// mostPerConnection is more with the race detector, which keeps notes of all memory.
const mostPerConnection = 200 << 10
