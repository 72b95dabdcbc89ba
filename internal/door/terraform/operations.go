package terraform

import (
	"net/http"
	"slices"
)

// What the path of a request names.
const (
	ofAll   = iota // no state: the list of them
	ofState        // a state
	ofLock         // the lock of a state
)

// An operation is one thing that can be asked. What the path names and the method find it.
type operation struct {
	name    string // in metrics
	on      int
	methods []string
	noted   string // as the journal calls it, in the words of all doors
	writes  bool
	serve   func(*call) error
}

// operations is the whole door. Terraform has methods of its own for locks; GitLab and Gitea
// give a lock a path, and use those of HTTP.
var operations = []operation{
	{"list-states", ofAll, []string{"GET", "HEAD"}, "records", false, (*call).list},
	{"read-state", ofState, []string{"GET", "HEAD"}, "record", false, (*call).read},
	{"write-state", ofState, []string{"POST", "PUT"}, "put-record", true, (*call).write},
	{"delete-state", ofState, []string{"DELETE"}, "delete-record", true, (*call).drop},
	{"lock-state", ofState, []string{"LOCK"}, "acquire", true, (*call).lock},
	{"unlock-state", ofState, []string{"UNLOCK"}, "release", true, (*call).unlock},
	{"lock-state", ofLock, []string{"LOCK", "POST", "PUT"}, "acquire", true, (*call).lock},
	{"unlock-state", ofLock, []string{"UNLOCK", "DELETE"}, "release", true, (*call).unlock},
	{"show-lock", ofLock, []string{"GET", "HEAD"}, "resource", false, (*call).showLock},
}

// unknown is a method that means nothing here.
var unknown = operation{name: "unknown", noted: "record"}

// find finds what is asked. A method that only a state has finds its operation where no state
// is named, too, so that the refusal can say what is missing.
func find(method string, at place) operation {
	on := ofState
	switch {
	case at.lock:
		on = ofLock
	case at.state == "" && (method == http.MethodGet || method == http.MethodHead):
		on = ofAll
	}
	for _, o := range operations {
		if o.on == on && slices.Contains(o.methods, method) {
			return o
		}
	}
	return unknown
}
