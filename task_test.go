package leasehold

import "testing"

func TestTaskFolder(t *testing.T) {
	for path, want := range map[string]string{
		"jobs/a": "jobs/", "jobs/night/a": "jobs/night/", "a": "", "/a": "", "jobs/": "", "": "", "jobs//": "jobs/",
	} {
		if got := TaskFolder(path); got != want {
			t.Errorf("the folder of %q is %q, want %q", path, got, want)
		}
	}
	for path, want := range map[string]bool{"jobs/": true, "jobs": false, "/": false, "": false} {
		if got := IsTaskFolder(path); got != want {
			t.Errorf("%q is a folder of tasks: %v, want %v", path, got, want)
		}
	}
}

func TestTaskStates(t *testing.T) {
	for s := TaskTodo; s <= TaskFailed; s++ {
		if got, ok := ParseTaskState(s.String()); !ok || got != s {
			t.Errorf("%v was read as %v, %v", s, got, ok)
		}
	}
	if _, ok := ParseTaskState("unknown"); ok || TaskState(9).String() != "unknown" {
		t.Error("a state that is none was read")
	}
}
