package access

import "strings"

// What clients of Terraform and Azure keep is kept as records and resources below roots of their own. Through their own
// doors it is reached as anything else; through others only with the verb foreign.

// A ForeignRoot is a part of the paths where foreign clients keep things.
type ForeignRoot struct {
	Part
	Some bool // some paths that begin so are not theirs: ask IsForeign
}

var foreignRoots = []ForeignRoot{
	{Part{Path: "azure."}, true}, // azure.KIND/…
	{Part{Path: "azure/"}, false},
	{Part{Path: "terraform/"}, false},
	{Part{Path: "tflineage/"}, false},
}

// ForeignRoots returns them in order.
func ForeignRoots() []ForeignRoot { return foreignRoots }

// IsForeign reports whether a path is below such a root.
func IsForeign(path string) bool {
	root, _, below := strings.Cut(path, "/")
	return below && (root == "terraform" || root == "tflineage" || root == "azure" || strings.HasPrefix(root, "azure."))
}

// IsForeignDoor reports whether foreign clients come through a door.
func IsForeignDoor(door string) bool { return door == "terraform" || door == "azure" }
