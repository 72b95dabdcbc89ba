//go:build linux

package consul

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/consul/api"

	"github.com/leasehold/leasehold/internal/peer"
)

// cluster starts three servers.
func cluster(t *testing.T) (server, []*world) {
	t.Helper()
	s := leasehold(t, 3)
	var all []*world
	for i, url := range s.urls {
		all = append(all, newWorld(t, fmt.Sprint("server ", i), url))
	}
	return s, all
}

// others are the servers that do not lead.
func (s server) others() (follower, other int, leader *peer.LeaseholdMember) {
	leader = s.Leader()
	follower = -1
	for i, m := range s.Members {
		switch {
		case m == leader:
		case follower < 0:
			follower = i
		default:
			other = i
		}
	}
	return follower, other, leader
}

// The leader is killed while one holds and one waits. The holder goes on holding, nobody else gets the lock, and the
// next one gets it when it is given back, with a larger number.
func TestLeaderKilled(t *testing.T) {
	s, all := cluster(t)
	f, o, leader := s.others()
	ann := all[f].lock(api.LockOptions{Key: "lock", SessionTTL: "15s", MonitorRetries: 20})
	lost, err := ann.Lock(nil)
	all[f].must(err)
	before, _, err := all[f].client().KV().Get("lock", nil)
	all[f].must(err)
	won := make(chan error, 1)
	bob := all[o].lock(api.LockOptions{Key: "lock", SessionTTL: "15s", MonitorRetries: 20})
	go func() {
		for {
			got, err := bob.Lock(nil)
			if err == nil && got != nil {
				won <- nil
				return
			}
			if !api.IsRetryableError(err) {
				won <- err
				return
			}
		}
	}()
	time.Sleep(300 * time.Millisecond) // it waits by now, most of the time
	leader.Kill()
	select {
	case <-lost:
		t.Error("the holder lost its lock")
	case err := <-won:
		t.Errorf("two hold the lock: %v", err)
	case <-time.After(3 * time.Second):
	}
	for began := time.Now(); ; time.Sleep(100 * time.Millisecond) {
		if err = ann.Unlock(); err == nil || time.Since(began) > patience {
			break
		}
	}
	all[f].must(err)
	all[f].must(soon(all[f], "the next holder", won))
	after, _, err := all[o].client().KV().Get("lock", nil)
	all[o].must(err)
	if after.LockIndex <= before.LockIndex {
		t.Errorf("the lock index went from %d to %d", before.LockIndex, after.LockIndex)
	}
}

// A blocking query goes on at another server, when its own is killed, from the index that it had: nothing is missed.
func TestBlockingGoesOnElsewhere(t *testing.T) {
	s, all := cluster(t)
	f, o, _ := s.others()
	l := 3 - f - o
	const n = 60
	written := make(chan struct{})
	go func() {
		defer close(written)
		for i := range n {
			for {
				_, err := all[l].client().KV().Put(&api.KVPair{Key: "watched", Value: fmt.Append(nil, i)}, nil)
				if err == nil {
					break
				}
			}
			if i == n/2 {
				s.Members[f].Kill()
			}
		}
	}()
	at, index, last := f, uint64(0), -1
	for last < n-1 {
		pair, meta, err := all[at].client().KV().Get("watched", &api.QueryOptions{WaitIndex: index, WaitTime: 5 * time.Second})
		if err != nil {
			at = o
			continue
		}
		if meta.LastIndex < index {
			t.Fatalf("the index went from %d to %d", index, meta.LastIndex)
		}
		if index = meta.LastIndex; pair == nil {
			continue
		}
		var now int
		_, err = fmt.Sscan(string(pair.Value), &now)
		all[at].must(err)
		if now < last {
			t.Fatalf("the value went from %d to %d", last, now)
		}
		last = now
	}
	<-written
}

// The answer to an acquire is lost. Asked again, the same session has the lock, once; and another never had it.
func TestLostReplyOfAnAcquire(t *testing.T) {
	s := leasehold(t, 1)
	w := newWorld(t, "leasehold", s.urls[0])
	session, _, err := w.client().Session().Create(&api.SessionEntry{TTL: "15s"}, nil)
	w.must(err)
	other, _, err := w.client().Session().Create(&api.SessionEntry{TTL: "15s"}, nil)
	w.must(err)
	proxy := peer.StartProxy(t, strings.TrimPrefix(s.urls[0], "http://"))
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: time.Second}
	put := func(query string) string {
		r, err := http.NewRequest("PUT", "http://"+proxy.Address+"/v1/kv/a?"+query, strings.NewReader("v"))
		w.must(err)
		answer, err := client.Do(r)
		if err != nil {
			return "lost"
		}
		defer answer.Body.Close()
		body, _ := io.ReadAll(answer.Body)
		return string(body)
	}
	last := uint64(0)
	for range 5 {
		proxy.DropReplies()
		if got := put("acquire=" + session); got != "lost" {
			t.Fatalf("the reply was not lost: %s", got)
		}
		proxy.Forward()
		if got := put("acquire=" + other); got != "false" {
			t.Errorf("the other session got %s", got)
		}
		if got := put("acquire=" + session); got != "true" {
			t.Errorf("asked again, the session got %s", got)
		}
		now := w.lockIndex("a")
		if now != last+1 {
			t.Errorf("the lock index went from %d to %d: there was more than one lease", last, now)
		}
		last = now
		proxy.DropReplies()
		put("release=" + session)
		proxy.Forward()
		if got := put("release=" + session); got != "false" {
			t.Errorf("released again: %s", got)
		}
	}
}

// The lock-delay, the lock and its index are there after a restart.
func TestRestart(t *testing.T) {
	s := leasehold(t, 1)
	w := newWorld(t, "leasehold", s.urls[0])
	gone := w.open(`{"LockDelay":"30s","TTL":"15s"}`)
	stays, other := w.open(`{"TTL":"60s"}`), w.open(`{"TTL":"60s"}`)
	w.send("PUT /v1/kv/delayed?acquire="+gone, "")
	w.send("PUT /v1/kv/held?acquire="+stays, "mine")
	held := w.send("GET /v1/kv/held", "").body
	w.send("PUT /v1/session/destroy/"+gone, "")
	s.Members[0].Kill()
	s.Members[0].Restart()
	if got := w.send("PUT /v1/kv/delayed?acquire="+other, ""); got.body != "false" {
		t.Errorf("the lock-delay did not survive the restart: %d %s", got.status, got.body)
	}
	if got := w.send("GET /v1/kv/held", "").body; got != held {
		t.Errorf("the lock was %s, and is %s", held, got)
	}
	if got := w.send("PUT /v1/kv/held?acquire="+other, "").body; got != "false" {
		t.Errorf("another got the lock: %s", got)
	}
	if got := w.send("PUT /v1/session/renew/"+stays, ""); got.status != 200 {
		t.Errorf("the session is gone: %s", got.body)
	}
}

// A lock is seen through the native API, and broken there; its holder is told at once.
func TestBreakThroughAnotherDoor(t *testing.T) {
	s := leasehold(t, 1)
	w := newWorld(t, "leasehold", s.urls[0])
	ann := w.lock(api.LockOptions{Key: "jobs/x", SessionName: "ann on host 7", LockDelay: 20 * time.Second})
	lost, err := ann.Lock(nil)
	w.must(err)
	answer, err := http.Get(s.URLs()[0] + "/v1/resources/jobs/x")
	w.must(err)
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	w.must(err)
	if !strings.Contains(string(body), "ann on host 7") {
		t.Errorf("the native API shows %s", body)
	}
	_, id, _ := strings.Cut(string(body), `"id":"`)
	id, _, _ = strings.Cut(id, `"`)
	broken, err := http.Post(s.URLs()[0]+"/v1/break", "application/json",
		strings.NewReader(`{"id":"`+id+`","period":"0s","by":"ops","reason":"stuck"}`))
	w.must(err)
	defer broken.Body.Close()
	if said, _ := io.ReadAll(broken.Body); broken.StatusCode != 200 {
		t.Fatalf("the break is answered %d %s", broken.StatusCode, said)
	}
	soon(w, "the loss", lost)
	if got := w.send("PUT /v1/kv/jobs/x?acquire="+w.open(""), ""); got.body != "false" || got.header.Get("X-Leasehold-Reason") == "" {
		t.Errorf("within the lock-delay another was answered %s %v", got.body, got.header)
	}
}
