package jsonbody

import (
	"runtime"
	"strings"
	"testing"

	v1 "github.com/leasehold/leasehold/api/v1"
)

// A body makes little, whatever it is made of.
func TestBombs(t *testing.T) {
	const most = 32 << 20
	for name, item := range map[string]string{"objects": "{}", "nulls": "null", "numbers": "0", "lists": "[]", "texts": `""`} {
		body := []byte(`{"then":[` + strings.Repeat(item+",", (v1.MaxTxnBody-100)/(len(item)+1)) + item + `]}`)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		err := Parse(body, new(v1.TxnRequest))
		runtime.ReadMemStats(&after)
		if made := after.TotalAlloc - before.TotalAlloc; err == nil || made > most {
			t.Errorf("%s: %v, %d MiB", name, err, made>>20)
		}
	}
}

// What is in texts is no part.
func TestLongTextsAreRead(t *testing.T) {
	body := []byte(`{"if":[{"record":"a\",b","text":"` + strings.Repeat(`,{[\\`, 32<<10) + `"}]}`)
	var r v1.TxnRequest
	if err := Parse(body, &r); err != nil || len(r.If) != 1 || len(r.If[0].Text) != 4*(32<<10) {
		t.Error(err)
	}
}
