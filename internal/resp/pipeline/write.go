package pipeline

import "runtime"

// Commands are written by a goroutine, which takes all that came while it wrote; or, if a caller is alone, by the
// caller itself, which saves two switches from one goroutine to another.

func (c *Conn) wakeWriter() {
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

// write writes what is queued, until the connection ends.
func (c *Conn) write() {
	for {
		select {
		case <-c.wake:
		case <-c.ended:
			return
		}
		if c.live.Load() > 1 {
			// Others that are about to send something get the chance: one system call for all of them.
			runtime.Gosched()
		}
		c.mu.Lock()
		if c.writing {
			c.mu.Unlock() // it is woken again if anything is left
			continue
		}
		b := c.takeLocked()
		c.mu.Unlock()
		n, err := c.conn.Write(b)
		c.mu.Lock()
		c.wroteLocked(b, n)
		c.mu.Unlock()
		if err != nil {
			c.fail(err)
			return
		}
	}
}

// writeAloneLocked writes what is queued without waiting, and unlocks. What the kernel has no room for is left to the
// writer: the caller must be free to give up.
func (c *Conn) writeAloneLocked() {
	b := c.takeLocked()
	c.mu.Unlock()
	n, err := c.socket.write(b)
	c.mu.Lock()
	left := c.wroteLocked(b, n)
	c.mu.Unlock()
	if err != nil {
		c.fail(err)
	} else if left {
		c.wakeWriter()
	}
}

// takeLocked returns what is to be written, and makes its caller the one who writes. From then on it counts as sent.
func (c *Conn) takeLocked() []byte {
	b := c.out
	c.out, c.spare, c.writing = c.spare[:0], nil, true
	c.handed = c.queued
	c.makeRoomLocked()
	return b
}

// keptBuffer is how large a buffer may be that is used again.
const keptBuffer = 256 << 10

// wroteLocked notes that n bytes were written of what was taken, and reports whether there is more to write.
func (c *Conn) wroteLocked(b []byte, n int) (left bool) {
	c.writing = false
	if n < len(b) {
		c.handed = c.queued - uint64(len(c.out)+len(b)-n)
		c.out = append(append([]byte(nil), b[n:]...), c.out...)
	}
	if cap(b) <= keptBuffer {
		c.spare = b
	}
	return len(c.out) > 0
}
