//go:build linux

package peer

import (
	"net/http"
	"testing"
)

func TestConsul(t *testing.T) {
	t.Parallel()
	m := StartConsul(t, ConsulConfig{Settings: map[string]any{"session_ttl_min": "1s"}}).Members[0]
	if _, err := httpDo(http.MethodPut, m.URL()+"/v1/session/create", `{"TTL":"1s","Checks":[]}`); err != nil {
		t.Error(err)
	}
	if _, err := httpDo(http.MethodPut, m.URL()+"/v1/kv/a", "1"); err != nil {
		t.Error(err)
	}
	m.Kill()
	if m.elected() == nil {
		t.Error("it answers after a kill")
	}
	m.Restart()
	if got, err := httpDo(http.MethodGet, m.URL()+"/v1/kv/a?raw&consistent", ""); string(got) != "1" {
		t.Errorf("after a kill, a is %q, %v", got, err)
	}
}

func TestConsulOfThree(t *testing.T) {
	t.Parallel()
	c := StartConsul(t, ConsulConfig{Members: 3})
	first := c.Leader()
	first.Kill()
	second := c.Leader()
	if second == first {
		t.Error("a member that was killed leads")
	}
	if _, err := httpDo(http.MethodPut, second.URL()+"/v1/kv/a", "1"); err != nil {
		t.Error(err)
	}
	first.Restart()
	await(t, "the member that was killed", first.elected)
}
