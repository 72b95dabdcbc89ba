package child

import "testing"

func TestReadStat(t *testing.T) {
	const rest = " 1 0 0 0 0 0 0 0 0 20 0 "
	for text, want := range map[string]struct {
		group int
		dead  bool
	}{
		"42 (sh) S 1 40 40 0 -1" + rest + "1 0":        {40, false},
		"42 (a ) Z 1 9) Z 1 40 40 0 -1" + rest + "1 0": {40, true},
		"42 (sh) X 1 40 40 0 -1" + rest + "0 0":        {40, true},
		"42 (threads) Z 1 40 40 0 -1" + rest + "3 0":   {40, false}, // another thread goes on
		"42 (stuck) D 1 40 40 0 -1" + rest + "1 0":     {40, false},
		"42 (cut) Z 1 40":                              {40, false},
		"":                                             {0, false},
	} {
		if group, dead := readStat([]byte(text)); group != want.group || dead != want.dead {
			t.Errorf("%q: group %d, dead %v", text, group, dead)
		}
	}
}
