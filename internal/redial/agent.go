package redial

import (
	"runtime/debug"
	"sync"
)

// module is the one that has this package.
const module = "github.com/leasehold/leasehold"

// Agent returns what our own clients call themselves, so that operators see who is connected.
var Agent = sync.OnceValue(func() string {
	const name = "leasehold-go"
	build, ok := debug.ReadBuildInfo()
	if !ok {
		return name
	}
	for _, m := range append(build.Deps, &build.Main) {
		if m.Path == module && m.Version != "" && m.Version != "(devel)" && m.Version != "v0.0.0" {
			return name + "/" + m.Version
		}
	}
	return name
})
