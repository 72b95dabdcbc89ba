//go:build linux

package peer

import "testing"

func TestMariaDB(t *testing.T) {
	t.Parallel()
	m := StartMariaDB(t)
	m.Kill()
	if m.greets() == nil {
		t.Error("it answers after a kill")
	}
	m.Restart()
	if err := m.greets(); err != nil {
		t.Error(err)
	}
}
