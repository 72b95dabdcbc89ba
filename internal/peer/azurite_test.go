//go:build linux

package peer

import (
	"net/http"
	"testing"
)

func TestAzurite(t *testing.T) {
	t.Parallel()
	a := StartAzurite(t)
	answers := func() error {
		answer, err := plain.Get(a.URL() + "?comp=list")
		if err != nil {
			return err
		}
		defer answer.Body.Close()
		if answer.StatusCode != http.StatusForbidden { // the request is not signed
			t.Errorf("it answers %s", answer.Status)
		}
		return nil
	}
	if err := answers(); err != nil {
		t.Error(err)
	}
	a.Kill()
	if answers() == nil {
		t.Error("it answers after a kill")
	}
	a.Restart()
	if err := answers(); err != nil {
		t.Error(err)
	}
}
