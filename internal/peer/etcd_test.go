//go:build linux

package peer

import (
	"encoding/base64"
	"encoding/json"
	"net/http"
	"testing"
)

func (m *EtcdMember) put(t *testing.T, key, value string) {
	t.Helper()
	body := `{"key":"` + base64.StdEncoding.EncodeToString([]byte(key)) +
		`","value":"` + base64.StdEncoding.EncodeToString([]byte(value)) + `"}`
	if _, err := httpDo(http.MethodPost, m.URL()+"/v3/kv/put", body); err != nil {
		t.Error(err)
	}
}

func (m *EtcdMember) get(t *testing.T, key string) (string, string) {
	t.Helper()
	body := `{"key":"` + base64.StdEncoding.EncodeToString([]byte(key)) + `"}`
	answer, err := httpDo(http.MethodPost, m.URL()+"/v3/kv/range", body)
	var found struct {
		Header struct{ Revision string }
		Kvs    []struct{ Value []byte }
	}
	if err == nil {
		err = json.Unmarshal(answer, &found)
	}
	if err != nil || len(found.Kvs) != 1 {
		t.Fatalf("%s is %s, %v", key, answer, err)
	}
	return string(found.Kvs[0].Value), found.Header.Revision
}

func TestEtcd(t *testing.T) {
	t.Parallel()
	m := StartEtcd(t, EtcdConfig{}).Members[0]
	m.put(t, "a", "1")
	older := m.Copy()
	m.put(t, "a", "2")
	m.Kill()
	m.Restart()
	value, before := m.get(t, "a")
	if value != "2" {
		t.Errorf("after a kill, a is %q", value)
	}
	m.Restore(older)
	if value, after := m.get(t, "a"); value != "1" || after >= before {
		t.Errorf("after an older copy was restored, a is %q at revision %s, and it was at %s", value, after, before)
	}
	m.RestoreBumped(older, 1000)
	if value, after := m.get(t, "a"); value != "1" || len(after) != 4 {
		t.Errorf("after it was restored with a bump of 1000, a is %q at revision %s", value, after)
	}
}

func TestEtcdOfThree(t *testing.T) {
	t.Parallel()
	e := StartEtcd(t, EtcdConfig{Members: 3})
	first := e.Leader()
	first.put(t, "a", "1")
	first.Pause()
	second := e.Leader()
	if second == first {
		t.Fatal("a paused member leads")
	}
	second.put(t, "a", "2")
	first.Resume()
	if value, _ := first.get(t, "a"); value != "2" {
		t.Errorf("the member that was paused has %q", value)
	}
	second.Kill()
	second.Restart()
	if got := len(e.Endpoints()); got != 3 {
		t.Errorf("there are %d endpoints", got)
	}
}
