package azureblob

import (
	"testing"

	"github.com/leasehold/leasehold/internal/core/access"
)

// Wherever something of a blob is kept, a binding to where its bytes are covers it.
func TestABindingCoversAllOfABlob(t *testing.T) {
	var p *access.Policy
	p = p.With(access.Keys{}, access.Items{Bindings: []*access.Binding{{
		Name: "b", Role: "member", Principal: "azure:prod", Namespace: "default", Prefix: RootBytes + "prod/box/a%?/"}}})
	may := p.Compile(&access.Asker{Principal: "azure:prod"})
	place := Place{Account: "prod", Container: "box", Blob: "a%?/x"}
	for _, root := range Roots {
		path := place.Of(root)
		if root == RootBlocks || root == RootSnapshots || root == RootPast {
			path = place.Part(root) + "1"
		}
		if !may.May(access.RecordWrite, "default", path, nil) {
			t.Errorf("it does not cover %s", path)
		}
	}
}
