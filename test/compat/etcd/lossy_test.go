//go:build linux

package etcd

import (
	"context"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/leasehold/leasehold/test/process"
)

// A lossy proxy stands in front of a server and loses answers of gRPC: the server has sent them, so what was asked is
// done, and the client finds its connection broken.
type lossy struct {
	address string
	target  string
	loses   func(n int) bool // whether the answer with a number is lost, from 1 on

	mu      sync.Mutex
	answers int
	lost    int
	conns   map[net.Conn]bool
}

func startLossy(t testing.TB, target string, loses func(n int) bool) *lossy {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &lossy{address: listener.Addr().String(), target: target, loses: loses, conns: map[net.Conn]bool{}}
	var running sync.WaitGroup
	running.Go(func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			running.Go(func() { p.serve(client) })
		}
	})
	t.Cleanup(func() {
		_ = listener.Close()
		p.mu.Lock()
		for c := range p.conns {
			_ = c.Close()
		}
		p.mu.Unlock()
		running.Wait()
	})
	return p
}

func (p *lossy) serve(client net.Conn) {
	server, err := net.Dial("tcp", p.target)
	if err != nil {
		_ = client.Close()
		return
	}
	end := func() { _, _ = client.Close(), server.Close() }
	p.mu.Lock()
	p.conns[client] = true
	p.mu.Unlock()
	defer func() {
		end()
		p.mu.Lock()
		delete(p.conns, client)
		p.mu.Unlock()
	}()
	go func() {
		_, _ = io.Copy(server, client)
		end()
	}()
	p.answer(client, server)
}

// answer forwards what the server says, a frame of HTTP/2 at a time, until an answer is lost.
func (p *lossy) answer(client io.Writer, server io.Reader) {
	const data = 0 // the type of a frame that carries a message
	for {
		frame := make([]byte, 9)
		if _, err := io.ReadFull(server, frame); err != nil {
			return
		}
		length := int(frame[0])<<16 | int(frame[1])<<8 | int(frame[2])
		frame = append(frame, make([]byte, length)...)
		if _, err := io.ReadFull(server, frame[9:]); err != nil {
			return
		}
		if frame[3] == data && length > 0 && p.losesNext() {
			return
		}
		if _, err := client.Write(frame); err != nil {
			return
		}
	}
}

func (p *lossy) losesNext() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.answers++
	if !p.loses(p.answers) {
		return false
	}
	p.lost++
	return true
}

// hasLost reports how many answers were lost.
func (p *lossy) hasLost() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.lost
}

// loseEach runs a program again and again, through either port. Each time it loses another of its answers, until it has
// no more of them.
func loseEach(t *testing.T, program func(w *world, lossy *clientv3.Client, name string)) {
	t.Helper()
	own := process.Reserve(t)
	server := leasehold(t, 1, "--etcd-listen", own)
	for name, address := range map[string]string{"own port": own, "shared port": server.Members[0].Address} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 2*patience)
			defer cancel()
			w := &world{T: t, name: name, ctx: ctx, endpoints: []string{"http://" + address}}
			w.client = w.dial(w.endpoints...)
			lost := 0
			for n := 1; n == 1 || lost == n-1; n++ {
				p := startLossy(t, address, func(answer int) bool { return answer == n })
				client := w.dial("http://" + p.address)
				program(w, client, fmt.Sprintf("lost/%s/%d", strings.ReplaceAll(name, " ", "-"), n))
				if ctx.Err() != nil {
					t.Fatalf("it hangs when answer %d is lost", n)
				}
				lost += p.hasLost()
				_ = client.Close()
			}
			t.Logf("each of %d answers was lost once", lost)
		})
	}
}
