package native

import (
	"testing"
	"testing/synctest"

	v1 "github.com/leasehold/leasehold/api/v1"
	"github.com/leasehold/leasehold/internal/engine"
	"github.com/leasehold/leasehold/internal/engine/memory"
)

// sharedDoor returns a door with a resource that ann, bob and cyd share.
func sharedDoor(t *testing.T) *opened {
	e := memory.Start(engine.NewGoClock())
	t.Cleanup(func() { e.Close() })
	door := open(e, Config{})
	for _, who := range []string{"ann", "bob", "cyd"} {
		ask(t, door, "POST", "/v1/acquire", `{"resource":"r","holder":"`+who+`","id":"`+who+`-1","shared":true,"capacity":9}`).expect(200)
	}
	return door
}

// TestBreakOfSeveral: a break by resource of those who share it names nobody, so it has to say
// that all are meant.
func TestBreakOfSeveral(t *testing.T) {
	door := sharedDoor(t)
	end := func(body string) answer { t.Helper(); return ask(t, door, "POST", "/v1/break", body) }
	end(`{"resource":"r","token":3,"period":"0s"}`).expect(422,
		`r has 3 holders: name the lease by its id (ann-1 of ann, bob-1 of bob, cyd-1 of cyd), or say \"all\"`)
	end(`{"id":"ann-1","all":true}`).expect(400, "all goes with a resource")

	one := read[v1.Lease](end(`{"id":"bob-1","token":2,"period":"0s"}`).expect(200, `"state":"broken"`))
	if one.Holder != "bob" || len(one.Also) != 0 {
		t.Errorf("by id it ended %+v", one)
	}
	for _, id := range []string{"ann-1", "cyd-1"} {
		ask(t, door, "POST", "/v1/renew", `{"id":"`+id+`"}`).expect(200, `"state":"leased"`)
	}

	all := `{"resource":"r","token":3,"all":true,"period":"0s","reason":"maintenance"}`
	for _, what := range []string{"first", "again"} {
		ended := read[v1.Lease](ask(t, door, "POST", "/v1/break", all, "Idempotency-Key", "k1").expect(200))
		if ended.Holder != "cyd" || len(ended.Also) != 1 || ended.Also[0].Holder != "ann" || ended.Also[0].State != "broken" {
			t.Errorf("%s it ended %+v", what, ended)
		}
	}
}

// TestBreakSparesTheNextHolder: an id that was handed to another holder since the operator looked
// is not ended.
func TestBreakSparesTheNextHolder(t *testing.T) {
	door := sharedDoor(t)
	ask(t, door, "POST", "/v1/change", `{"id":"ann-1","holder":"dan"}`).expect(200, `"token":4`)
	ask(t, door, "POST", "/v1/break", `{"id":"ann-1","token":1,"period":"0s"}`).expect(410,
		"lease ann-1 no longer has token 1: dan has it with token 4")
	ask(t, door, "POST", "/v1/renew", `{"id":"ann-1"}`).expect(200, `"state":"leased"`)
}

// TestBreakOfAWaiter: an id that was seen in the queue is taken out of it, and keeps the lease that
// it was granted since.
func TestBreakOfAWaiter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		door := sharedDoor(t)
		wait := func(id string) {
			go ask(t, door, "POST", "/v1/acquire", `{"resource":"r","holder":"`+id+`","id":"`+id+`","wait":"1h","ttl":"1h"}`)
			synctest.Wait()
		}
		end := func(body string) answer { t.Helper(); return ask(t, door, "POST", "/v1/break", body) }
		wait("dan")
		end(`{"id":"dan","waiting":true,"token":4}`).expect(400, "it has no token yet")
		end(`{"id":"dan","waiting":true}`).expect(200, `"state":"broken"`)
		end(`{"id":"dan","waiting":true}`).expect(200, `"state":"broken"`)

		wait("eve")
		end(`{"resource":"r","token":3,"all":true,"period":"0s"}`).expect(200)
		end(`{"id":"eve","waiting":true,"period":"0s"}`).expect(410,
			"eve no longer waits: eve now holds r, with token 4; look again before you break that")
		ask(t, door, "POST", "/v1/renew", `{"id":"eve"}`).expect(200, `"state":"leased"`)
		end(`{"id":"eve","period":"0s"}`).expect(200, `"state":"broken"`)
	})
}
