//go:build !race

package etcd

// mostPerConnection is what a connection with one idle watch may cost, with its client.
const mostPerConnection = 92 << 10
