//go:build !race

package server

import "testing"

// The race detector makes pools forget.
func TestBatchDoesNotAllocate(t *testing.T) {
	b := newBench(Config{})
	c := b.open(t.Context(), nopConn{})
	defer b.close(c)
	sent := []byte("*2\r\n$3\r\nNOW\r\n$1\r\n1\r\n*2\r\n$3\r\nNOW\r\n$1\r\n2\r\n*1\r\n$4\r\nPING\r\n")
	got := testing.AllocsPerRun(100, func() {
		c.in.Filled(copy(c.in.Space(), sent))
		c.work()
	})
	if got != 0 {
		t.Errorf("%v allocations", got)
	}
}
