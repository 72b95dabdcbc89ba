package access

import (
	"fmt"
	"sync"
	"testing"
)

// The log and doors make new policies of one that all of them see. The race detector finds what they write to it.
func TestAPolicyIsCopiedByManyAtOnce(t *testing.T) {
	p := policy(&Binding{Role: "admin", Principal: "ops", Namespace: "*"})
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			more := Items{Bindings: []*Binding{{Name: fmt.Sprint("b", i), Role: "member", Principal: "ann"}}}
			if n := p.With(Keys{}, more).bindings.Len(); n != 2 {
				t.Errorf("the new policy has %d bindings", n)
			}
		})
	}
	wg.Wait()
	if n := p.bindings.Len(); n != 1 {
		t.Errorf("the old policy has %d bindings now", n)
	}
}
