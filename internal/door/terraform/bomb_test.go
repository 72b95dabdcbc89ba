package terraform

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/leasehold/leasehold/internal/door/doortest"
	"github.com/leasehold/leasehold/internal/tfstate"
)

// A body makes little, whatever it is made of: a lock info, a permit, and a state, of which only the head is kept.
func TestBombs(t *testing.T) {
	doortest.Bombs(t, tfstate.MaxLockInfo, doortest.JSONBombs("ID", "ID"), func(body []byte) {
		_, _ = tfstate.ParseLockInfo(body)
		_ = json.Unmarshal(body, new(tfstate.Permit))
	})
	t.Run("states", func(t *testing.T) {
		bombs := doortest.JSONBombs("resources", "lineage")
		bombs["fields that are all new"] = [3]string{`{"version":4,"x":{`, `"\u00e9`, ""}
		doortest.Bombs(t, 4<<20, bombs, func(body []byte) {
			s := tfstate.NewScanner()
			for part := body; len(part) > 0 && s.Err() == nil; {
				n := min(len(part), 4<<10)
				_, _ = s.Write(part[:n])
				part = part[n:]
			}
			_, _ = s.Head()
			_, _ = tfstate.ReadHead(bytes.NewReader(body))
		})
	})
}
