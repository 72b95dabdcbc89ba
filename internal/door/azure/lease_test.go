package azure

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/azureblob"
	"github.com/leasehold/leasehold/internal/core"
)

// The states of a lease that Azure tells apart.
var states = []string{"available", "leased", "infinite", "breaking", "broken", "expired"}

// into brings a blob, or a container, into a state, in which A has or had the lease. It
// is made anew.
func (b *bench) into(target, state string) {
	b.Helper()
	acquire := func(seconds string) {
		b.lease(target, "acquire", "x-ms-lease-duration", seconds, "x-ms-proposed-lease-id", idA).expect(201)
	}
	switch state {
	case "leased":
		acquire("15")
	case "infinite":
		acquire("-1")
	case "breaking":
		acquire("60")
		b.lease(target, "break", "x-ms-lease-break-period", "30").expect(202)
	case "broken":
		acquire("-1")
		b.lease(target, "break", "x-ms-lease-break-period", "0").expect(202)
	case "expired":
		acquire("15")
		time.Sleep(15*time.Second + time.Millisecond)
		synctest.Wait()
	}
	if got := b.stateOf(target); got != strings.Replace(state, "infinite", "leased", 1) {
		b.Fatalf("%s is %s, and should be %s", target, got, state)
	}
}

func (b *bench) stateOf(target string) string {
	return b.ask("HEAD", target, "").expect(200).get("x-ms-lease-state")
}

const (
	present   = "409 LeaseAlreadyPresent"
	mismatch  = "409 LeaseIdMismatchWithLeaseOperation"
	none      = "409 LeaseNotPresentWithLeaseOperation"
	nobreak   = "409 LeaseIsBreakingAndCannotBeAcquired"
	nochange  = "409 LeaseIsBreakingAndCannotBeChanged"
	norenew   = "409 LeaseIsBrokenAndCannotBeRenewed"
	leasedA   = " leased " + idA
	leasedB   = " leased " + idB
	available = " available"
)

// actions is what Azure's table says: for each action one outcome for each of the states.
var actions = []struct {
	name    string
	action  string
	headers []string
	want    [6]string
}{
	{"acquire", "acquire", []string{"x-ms-lease-duration", "15"},
		[6]string{"201 leased", present, present, present, "201 leased", "201 leased"}},
	{"acquire A", "acquire", []string{"x-ms-lease-duration", "30", "x-ms-proposed-lease-id", idA},
		[6]string{"201" + leasedA, "201" + leasedA, "201" + leasedA, nobreak, "201" + leasedA, "201" + leasedA}},
	{"acquire A as before", "acquire", []string{"x-ms-lease-duration", "15", "x-ms-proposed-lease-id", idA},
		[6]string{"201" + leasedA, "201" + leasedA, "201" + leasedA, nobreak, "201" + leasedA, "201" + leasedA}},
	{"acquire A for ever", "acquire", []string{"x-ms-lease-duration", "-1", "x-ms-proposed-lease-id", idA},
		[6]string{"201" + leasedA, "201" + leasedA, "201" + leasedA, nobreak, "201" + leasedA, "201" + leasedA}},
	{"acquire B", "acquire", []string{"x-ms-lease-duration", "15", "x-ms-proposed-lease-id", idB},
		[6]string{"201" + leasedB, present, present, present, "201" + leasedB, "201" + leasedB}},
	{"break at once", "break", []string{"x-ms-lease-break-period", "0"},
		[6]string{none, "202 t=0 broken", "202 t=0 broken", "202 t=0 broken", "202 t=0 broken", "202 t=0 broken"}},
	{"break in 10", "break", []string{"x-ms-lease-break-period", "10"},
		[6]string{none, "202 t=10 breaking", "202 t=10 breaking", "202 t=10 breaking", "202 t=0 broken", "202 t=0 broken"}},
	{"break in 50", "break", []string{"x-ms-lease-break-period", "50"},
		[6]string{none, "202 t=15 breaking", "202 t=50 breaking", "202 t=30 breaking", "202 t=0 broken", "202 t=0 broken"}},
	{"break", "break", nil,
		[6]string{none, "202 t=15 breaking", "202 t=0 broken", "202 t=30 breaking", "202 t=0 broken", "202 t=0 broken"}},
	{"change A to B", "change", []string{"x-ms-lease-id", idA, "x-ms-proposed-lease-id", idB},
		[6]string{none, "200" + leasedB, "200" + leasedB, nochange, none, none}},
	{"change B to A", "change", []string{"x-ms-lease-id", idB, "x-ms-proposed-lease-id", idA},
		[6]string{none, "200" + leasedA, "200" + leasedA, mismatch, none, none}},
	{"change B to C", "change", []string{"x-ms-lease-id", idB, "x-ms-proposed-lease-id", idC},
		[6]string{none, mismatch, mismatch, mismatch, none, none}},
	{"renew A", "renew", []string{"x-ms-lease-id", idA},
		[6]string{mismatch, "200" + leasedA, "200" + leasedA, norenew, norenew, "200" + leasedA}},
	{"renew B", "renew", []string{"x-ms-lease-id", idB},
		[6]string{mismatch, mismatch, mismatch, mismatch, mismatch, mismatch}},
	{"release A", "release", []string{"x-ms-lease-id", idA},
		[6]string{mismatch, "200" + available, "200" + available, "200" + available, "200" + available, "200" + available}},
	{"release B", "release", []string{"x-ms-lease-id", idB},
		[6]string{mismatch, mismatch, mismatch, mismatch, mismatch, mismatch}},
}

func TestEveryActionInEveryState(t *testing.T) {
	for _, kind := range []string{"blob", "container"} {
		for _, a := range actions {
			for i, state := range states {
				t.Run(kind+"/"+a.name+"/"+state, func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						b := newBench(t)
						target := "/things?restype=container"
						b.container("things")
						if kind == "blob" {
							target = "/things/one"
							b.blob("things/one", "1")
						}
						b.into(target, state)
						tag := b.ask("HEAD", target, "").get("ETag")
						b.expectAction(target, state, a.want[i], b.lease(target, a.action, a.headers...))
						if now := b.ask("HEAD", target, "").get("ETag"); now != tag {
							t.Errorf("the tag is %s and was %s: a lease changes none", now, tag)
						}
					})
				})
			}
		}
	}
}

// expectAction compares an outcome with what is wanted: status, code or x-ms-lease-time,
// state, and who holds it.
func (b *bench) expectAction(target, before, want string, got reply) {
	b.Helper()
	shown := strconv.Itoa(got.status)
	if got.code != "" {
		if shown += " " + got.code; shown != want {
			b.Fatalf("got %q, want %q: %s", shown, want, got.body)
		}
		if state := b.stateOf(target); state != strings.Replace(before, "infinite", "leased", 1) {
			b.Errorf("it was refused, and is %s now", state)
		}
		return
	}
	if left := got.get("x-ms-lease-time"); left != "" {
		shown += " t=" + left
	}
	shown += " " + b.stateOf(target)
	if parts := strings.Fields(want); len(parts) == 3 && parts[1] == "leased" {
		shown += " " + got.get("x-ms-lease-id")
	}
	if shown != want {
		b.Errorf("got %q, want %q", shown, want)
	}
	if got.get("ETag") == "" || got.get("Last-Modified") == "" {
		b.Errorf("no tag, or no time: %v", got.header)
	}
}

// uses is what Azure's table says of those who use a blob.
func TestEveryUseInEveryState(t *testing.T) {
	const (
		noLease  = "412 LeaseNotPresentWithBlobOperation"
		wrong    = "412 LeaseIdMismatchWithBlobOperation"
		lost     = "412 LeaseLost"
		missing  = "412 LeaseIdMissing"
		ok       = "ok"
		nowFree  = "ok available"
		settings = "/things/one?comp=metadata"
	)
	for _, use := range []struct {
		name, id string
		write    bool
		want     [6]string
	}{
		{"write with A", idA, true, [6]string{noLease, ok, ok, ok, lost, lost}},
		{"write with B", idB, true, [6]string{noLease, wrong, wrong, wrong, noLease, noLease}},
		{"write", "", true, [6]string{ok, missing, missing, missing, nowFree, nowFree}},
		{"read with A", idA, false, [6]string{noLease, ok, ok, ok, lost, lost}},
		{"read with B", idB, false, [6]string{noLease, wrong, wrong, wrong, noLease, noLease}},
		{"read", "", false, [6]string{ok, ok, ok, ok, ok, ok}},
	} {
		writes := map[string]func(b *bench, headers ...string) reply{
			"put": func(b *bench, h ...string) reply {
				return b.ask("PUT", "/things/one", "2", append(h, "x-ms-blob-type", "BlockBlob")...)
			},
			"metadata":   func(b *bench, h ...string) reply { return b.ask("PUT", settings, "", h...) },
			"properties": func(b *bench, h ...string) reply { return b.ask("PUT", "/things/one?comp=properties", "", h...) },
			"delete":     func(b *bench, h ...string) reply { return b.ask("DELETE", "/things/one", "", h...) },
			"block": func(b *bench, h ...string) reply {
				return b.ask("PUT", "/things/one?comp=block&blockid=QQ==", "2", h...)
			},
			"blocklist": func(b *bench, h ...string) reply {
				return b.ask("PUT", "/things/one?comp=blocklist", "<BlockList></BlockList>", h...)
			},
			"copy": func(b *bench, h ...string) reply {
				return b.ask("PUT", "/things/one", "", append(h, "x-ms-copy-source", "https://127.0.0.1/leasehold/things/two")...)
			},
		}
		reads := map[string]func(b *bench, headers ...string) reply{
			"get":       func(b *bench, h ...string) reply { return b.ask("GET", "/things/one", "", h...) },
			"head":      func(b *bench, h ...string) reply { return b.ask("HEAD", "/things/one", "", h...) },
			"metadata":  func(b *bench, h ...string) reply { return b.ask("GET", settings, "", h...) },
			"snapshot":  func(b *bench, h ...string) reply { return b.ask("PUT", "/things/one?comp=snapshot", "", h...) },
			"blocklist": func(b *bench, h ...string) reply { return b.ask("GET", "/things/one?comp=blocklist", "", h...) },
		}
		kinds := reads
		if use.write {
			kinds = writes
		}
		for kind, do := range kinds {
			for i, state := range states {
				t.Run(use.name+"/"+kind+"/"+state, func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						b := newBench(t)
						b.container("things")
						b.blob("things/one", "1")
						b.blob("things/two", "2")
						b.into("/things/one", state)
						var headers []string
						if use.id != "" {
							headers = []string{"x-ms-lease-id", use.id}
						}
						got := do(b, headers...)
						if !strings.HasPrefix(use.want[i], ok) {
							if shown := fmt.Sprintf("%d %s", got.status, got.code); shown != use.want[i] {
								t.Errorf("got %s, want %s", shown, use.want[i])
							}
							return
						}
						if got.status >= 300 {
							t.Fatalf("got %d %s: %s", got.status, got.code, got.body)
						}
						if use.want[i] == nowFree && kind != "delete" && kind != "block" && b.stateOf("/things/one") != "available" {
							t.Errorf("it is %s after a write", b.stateOf("/things/one"))
						}
					})
				})
			}
		}
	}
}

func TestContainerLeaseGuardsOnlyItsDeletion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		b.container("box")
		const target = "/box?restype=container"
		b.into(target, "leased")
		b.blob("box/x", "1")
		b.ask("PUT", target+"&comp=metadata", "", "x-ms-meta-a", "1").expect(200)
		b.ask("PUT", target+"&comp=metadata", "", "x-ms-meta-a", "1", "x-ms-lease-id", idB).expect(412, "LeaseIdMismatchWithContainerOperation")
		b.ask("GET", target+"&comp=list", "").expect(200)
		b.ask("DELETE", target, "").expect(412, "LeaseIdMissing")
		b.ask("DELETE", target, "", "x-ms-lease-id", idB).expect(412, "LeaseIdMismatchWithContainerOperation")
		time.Sleep(16 * time.Second)
		// A write does not void what can be renewed.
		b.ask("PUT", target+"&comp=metadata", "", "x-ms-meta-a", "2").expect(200)
		b.lease(target, "renew", "x-ms-lease-id", idA).expect(200)
		b.lease(target, "break", "x-ms-lease-break-period", "10").expect(202)
		b.lease("/box/x", "acquire", "x-ms-lease-duration", "-1").expect(201)
		b.ask("DELETE", target, "", "x-ms-lease-id", idA).expect(202)
		b.container("box")
		if state := b.stateOf(target); state != "available" {
			t.Errorf("a new container is %s", state)
		}
		b.blob("box/x", "1")
	})
}

// What has ended is never revived.
func TestRenewOfAnExpiredLeaseIsANewGrant(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		b.container("things")
		b.blob("things/one", "1")
		b.into("/things/one", "leased")
		before := b.token("azure/leasehold/things/one")
		b.lease("/things/one", "renew", "x-ms-lease-id", idA).expect(200)
		if now := b.token("azure/leasehold/things/one"); now != before {
			t.Errorf("a renewal took token %d, after %d", now, before)
		}
		time.Sleep(16 * time.Second)
		b.lease("/things/one", "renew", "x-ms-lease-id", idA).expect(200)
		if now := b.token("azure/leasehold/things/one"); now <= before {
			t.Errorf("a new grant has token %d, after %d", now, before)
		}
		time.Sleep(14 * time.Second)
		if state := b.stateOf("/things/one"); state != "leased" {
			t.Errorf("it is %s after 14 of 15 seconds", state)
		}
		// After a write there is nothing left to renew.
		time.Sleep(2 * time.Second)
		b.blob("things/one", "2")
		b.lease("/things/one", "renew", "x-ms-lease-id", idA).expect(409, "LeaseIdMismatchWithLeaseOperation")
	})
}

func (b *bench) token(resource string) (token leasehold.Token) {
	b.Helper()
	err := b.engine.Read(b.Context(), func(v core.View) {
		for _, l := range v.Status(leasehold.DefaultNamespace, resource, 0).Holders {
			token = l.Token
		}
	})
	if err != nil {
		b.Fatal(err)
	}
	return token
}

func TestBreakEndsWhenItSaid(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		b.container("things")
		b.blob("things/one", "1")
		b.into("/things/one", "leased")
		time.Sleep(5 * time.Second)
		// Longer than what is left: it ends with the lease, and is broken, not expired.
		if left := b.lease("/things/one", "break", "x-ms-lease-break-period", "60").expect(202).get("x-ms-lease-time"); left != "10" {
			t.Errorf("it lasts for %s more", left)
		}
		time.Sleep(9900 * time.Millisecond)
		if state := b.stateOf("/things/one"); state != "breaking" {
			t.Errorf("it is %s", state)
		}
		time.Sleep(101 * time.Millisecond)
		synctest.Wait()
		if state := b.stateOf("/things/one"); state != "broken" {
			t.Errorf("it is %s", state)
		}
	})
}

func TestBadLeaseRequests(t *testing.T) {
	b := newBench(t)
	b.container("things")
	b.blob("things/one", "1")
	snap := b.ask("PUT", "/things/one?comp=snapshot", "").expect(201).get("x-ms-snapshot")
	for _, state := range []string{"available", "infinite"} {
		b.into("/things/one", state)
		for _, bad := range []struct {
			action  string
			headers []string
			code    string
		}{
			{"", nil, "MissingRequiredHeader"},
			{"steal", nil, "InvalidHeaderValue"},
			{"acquire", nil, "MissingRequiredHeader"},
			{"acquire", []string{"x-ms-lease-duration", "14"}, "InvalidHeaderValue"},
			{"acquire", []string{"x-ms-lease-duration", "61"}, "InvalidHeaderValue"},
			{"acquire", []string{"x-ms-lease-duration", "0"}, "InvalidHeaderValue"},
			{"acquire", []string{"x-ms-lease-duration", "-2"}, "InvalidHeaderValue"},
			{"acquire", []string{"x-ms-lease-duration", "15s"}, "InvalidHeaderValue"},
			{"acquire", []string{"x-ms-lease-duration", "15", "x-ms-proposed-lease-id", "me"}, "InvalidHeaderValue"},
			{"renew", nil, "MissingRequiredHeader"},
			{"renew", []string{"x-ms-lease-id", "1234"}, "InvalidHeaderValue"},
			{"release", nil, "MissingRequiredHeader"},
			{"change", []string{"x-ms-lease-id", idA}, "MissingRequiredHeader"},
			{"change", []string{"x-ms-proposed-lease-id", idA}, "MissingRequiredHeader"},
			{"break", []string{"x-ms-lease-break-period", "61"}, "InvalidHeaderValue"},
			{"break", []string{"x-ms-lease-break-period", "-1"}, "InvalidHeaderValue"},
		} {
			b.lease("/things/one", bad.action, bad.headers...).expect(400, bad.code)
		}
	}
	b.lease("/things/one?snapshot="+snap, "acquire", "x-ms-lease-duration", "15").expect(400, "InvalidQueryParameterValue")
	b.lease("/things/none", "acquire", "x-ms-lease-duration", "15").expect(404, "BlobNotFound")
	b.lease("/none/none", "acquire", "x-ms-lease-duration", "15").expect(404, "ContainerNotFound")
	b.lease("/none?restype=container", "acquire", "x-ms-lease-duration", "15").expect(404, "ContainerNotFound")
}

func TestGUIDs(t *testing.T) {
	const want = "0f8fad5b-d9cb-469f-a165-70867728950e"
	for _, s := range []string{
		want, strings.ToUpper(want), "0f8fad5bd9cb469fa16570867728950e", "{" + want + "}", "(" + want + ")", " " + want + " ",
		"{0x0f8fad5b,0xd9cb,0x469f,{0xa1,0x65,0x70,0x86,0x77,0x28,0x95,0x0e}}", "{0xf8fad5b, 0xd9cb, 0x469f, {0xa1, 0x65, 0x70, 0x86, 0x77, 0x28, 0x95, 0xe}}",
	} {
		if got, ok := azureblob.ParseGUID(s); !ok || got != want {
			t.Errorf("%s: %s %v", s, got, ok)
		}
	}
	for _, s := range []string{"", "x", want + "0", want[1:], "{" + want + ")", "{0f8fad5bd9cb469fa16570867728950e}", "{0x}}", "{0x0,{0x0}}", strings.Repeat("-", 36)} {
		if got, ok := azureblob.ParseGUID(s); ok {
			t.Errorf("%s: %s", s, got)
		}
	}
	b := newBench(t)
	b.container("things")
	b.blob("things/one", "1")
	b.lease("/things/one", "acquire", "x-ms-lease-duration", "-1", "x-ms-proposed-lease-id", "{"+strings.ToUpper(want)+"}").expect(201)
	b.lease("/things/one", "renew", "x-ms-lease-id", strings.ReplaceAll(want, "-", "")).expect(200)
	b.ask("PUT", "/things/one?comp=metadata", "", "x-ms-lease-id", "("+want+")").expect(200)
}

// A lease on a blob is a lease like any other: seen and broken by its name.
func TestOperatorBreaksALease(t *testing.T) {
	b := newBench(t)
	b.container("things")
	b.blob("things/one", "1")
	b.into("/things/one", "infinite")
	_, err := b.engine.Do(t.Context(), &core.Break{Namespace: leasehold.DefaultNamespace, Resource: "azure/leasehold/things/one",
		Token: b.token("azure/leasehold/things/one"), By: "alice", Reason: "the deploy hangs"})
	if err != nil {
		t.Fatal(err)
	}
	got := b.ask("PUT", "/things/one?comp=metadata", "", "x-ms-lease-id", idA).expect(412, "LeaseLost")
	if !strings.Contains(got.body, "broken by alice") || !strings.Contains(got.body, "the deploy hangs") {
		t.Errorf("it does not say why: %s", got.body)
	}
	// And the other way round: who holds the name by another door keeps the blob.
	if _, err := b.engine.Do(t.Context(), &core.Acquire{Namespace: leasehold.DefaultNamespace, Resource: "azure/leasehold/things/one", ID: "mine", Holder: "bob"}); err != nil {
		t.Fatal(err)
	}
	b.ask("DELETE", "/things/one", "").expect(412, "LeaseIdMissing")
	b.lease("/things/one", "acquire", "x-ms-lease-duration", "15").expect(409, "LeaseAlreadyPresent")
}

// A lease of another duration replaces the first without a gap, also if somebody waits.
func TestReacquireOvertakesWhoWaits(t *testing.T) {
	b := newBench(t)
	b.container("things")
	b.blob("things/one", "1")
	b.into("/things/one", "infinite")
	const resource = "azure/leasehold/things/one"
	if _, err := b.engine.Do(t.Context(), &core.Acquire{Namespace: leasehold.DefaultNamespace, Resource: resource, ID: "w", Holder: "bob", Wait: time.Hour, TTL: time.Minute}); err != nil {
		t.Fatal(err)
	}
	b.lease("/things/one", "acquire", "x-ms-lease-duration", "60", "x-ms-proposed-lease-id", idA).expect(201)
	if kind := b.ask("HEAD", "/things/one", "").get("x-ms-lease-duration"); kind != "fixed" {
		t.Errorf("the lease is %s", kind)
	}
	b.lease("/things/one", "release", "x-ms-lease-id", idA).expect(200)
	b.lease("/things/one", "acquire", "x-ms-lease-duration", "60", "x-ms-proposed-lease-id", idA).expect(409, "LeaseAlreadyPresent")
}

// Azure's clients let leases run out as a matter of course: that pages nobody, also after a lease of another
// duration, a new id, or a renewal of what had expired.
func TestExpiryIsNoAlarm(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		b.container("things")
		b.blob("things/one", "1")
		for range 3 {
			b.lease("/things/one", "acquire", "x-ms-lease-duration", "15", "x-ms-proposed-lease-id", idA).expect(201)
			time.Sleep(16 * time.Second)
		}
		b.lease("/things/one", "renew", "x-ms-lease-id", idA).expect(200)
		time.Sleep(16 * time.Second)
		b.into("/things/one", "infinite")
		b.lease("/things/one", "acquire", "x-ms-lease-duration", "20", "x-ms-proposed-lease-id", idA).expect(201)
		b.lease("/things/one", "change", "x-ms-lease-id", idA, "x-ms-proposed-lease-id", idB).expect(200)
		time.Sleep(21 * time.Second)
		synctest.Wait()
		if state := b.stateOf("/things/one"); state != "expired" {
			t.Errorf("it is %s", state)
		}
		err := b.engine.Read(t.Context(), func(v core.View) {
			if list, _ := v.Alarms(leasehold.DefaultNamespace, core.AlarmQuery{Most: 10}); len(list) > 0 {
				t.Errorf("alarms: %+v", list)
			}
		})
		if err != nil {
			t.Fatal(err)
		}
	})
}
