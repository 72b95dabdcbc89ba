package azureaccount

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"
	"time"
)

// containers is where the records of all containers are.
const containers = "azure/"

// ContainerPath returns the path of a container's record, and of the resource that is
// leased with it.
func ContainerPath(account, container string) string { return containers + account + "/" + container }

// A ContainerRecord is the value of a new container's record. The door adds fields later; these it
// needs from the start.
type ContainerRecord struct {
	Created  int64  `json:"created"`  // Unix nanoseconds
	Modified int64  `json:"modified"` // Unix nanoseconds
	ETag     string `json:"etag"`
}

// NewContainer returns the record of a container that is made without a client of Azure:
// its path and its value.
func NewContainer(account, container string, now time.Time) (path, value string, err error) {
	switch {
	case !ValidName(account):
		return "", "", fmt.Errorf("%q cannot be the name of an account", account)
	case !ValidContainer(container):
		return "", "", fmt.Errorf("%q cannot be the name of a container: 3 to 63 lower-case letters, digits and "+
			"single dashes are allowed", container)
	}
	r := ContainerRecord{Created: now.UnixNano(), Modified: now.UnixNano(), ETag: NewETag()}
	text, err := json.Marshal(r)
	return ContainerPath(account, container), string(text), err
}

// ValidContainer reports whether a name is one that Azure allows for a container.
func ValidContainer(name string) bool {
	if name == "$root" || name == "$logs" || name == "$web" {
		return true
	}
	if len(name) < 3 || len(name) > 63 || name[0] == '-' || name[len(name)-1] == '-' || strings.Contains(name, "--") {
		return false
	}
	return strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789-") == ""
}

// NewETag returns a new tag. It is random, so that it never equals that of an earlier state.
func NewETag() string { return `"0x` + strings.ToUpper(hex.EncodeToString(random(8))) + `"` }
