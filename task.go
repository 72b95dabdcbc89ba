package leasehold

import "time"

// A Task is work that somebody put below a path for the next worker to claim. What is to be done is in the record of
// the same path; who does it has the lease on the resource of that path.
type Task struct {
	Namespace   string
	Path        string // the folder that it is claimed from, and its name
	State       TaskState
	Priority    int       // larger ones are claimed first
	Attempts    int       // that were begun and not given back
	MaxAttempts int       // it fails after so many
	Lease       string    // of who does it, or did it last
	Holder      string    // the same
	Token       Token     // the same; a result with a smaller one is refused
	Result      string    // what the last attempt came to, or why it failed
	Changed     time.Time // when it came to its state
	Order       uint64    // among those of its priority, smallest first
}

// TaskState is how far a task has come.
type TaskState uint8

// The states. Snapshots number them: add at the end only.
const (
	TaskTodo   TaskState = iota + 1 // it can be claimed
	TaskDoing                       // somebody has the lease on it
	TaskDone                        // its last holder said so
	TaskFailed                      // it was tried as often as it may be
)

var taskStates = [...]string{TaskTodo: "todo", TaskDoing: "doing", TaskDone: "done", TaskFailed: "failed"}

// String returns the state in a word.
func (s TaskState) String() string {
	if int(s) < len(taskStates) && s > 0 {
		return taskStates[s]
	}
	return "unknown"
}

// ParseTaskState parses what String returns. It reports whether text is a state.
func ParseTaskState(text string) (TaskState, bool) {
	for s := TaskTodo; s <= TaskFailed; s++ {
		if s.String() == text {
			return s, true
		}
	}
	return 0, false
}

// TaskFolder returns the path that a task is claimed from, up to its last slash; empty if path is not that of a task.
func TaskFolder(path string) string {
	for i := len(path) - 2; i > 0; i-- {
		if path[i] == '/' {
			return path[:i+1]
		}
	}
	return ""
}

// IsTaskFolder reports whether tasks can be claimed from a path: it ends with a slash, and has something before it.
func IsTaskFolder(path string) bool { return len(path) > 1 && path[len(path)-1] == '/' }
