package native

import (
	"testing"

	v1 "github.com/leasehold/leasehold/api/v1"
	"github.com/leasehold/leasehold/api/v1/tasks"
)

func TestTasks(t *testing.T) {
	door := newDoor(t, Config{})
	ask(t, door, "GET", "/v1/tasks/jobs/a", "").expect(404, "no task jobs/a")
	ask(t, door, "PUT", "/v1/tasks/jobs/a", `{"value":"b25l","attempts":2,"by":"ops"}`).expect(200)
	ask(t, door, "PUT", "/v1/tasks/jobs/b", `{"priority":3}`).expect(200)
	list := read[v1.List[tasks.Task]](ask(t, door, "GET", "/v1/tasks?prefix=jobs/&limit=1", "").expect(200, `"todo"`))
	if len(list.Items) != 1 || list.Items[0].Path != "jobs/a" || list.Next == "" {
		t.Fatalf("listed %+v", list)
	}
	ask(t, door, "GET", "/v1/tasks?prefix=jobs/&limit=1&after="+list.Next, "").expect(200, `"jobs/b"`)

	first := read[v1.Lease](ask(t, door, "POST", "/v1/acquire", `{"resource":"jobs/","holder":"w1"}`).expect(200, `"jobs/b"`))
	second := read[v1.Lease](ask(t, door, "POST", "/v1/acquire", `{"resource":"jobs/","holder":"w2"}`).expect(200, `"jobs/a"`))
	ask(t, door, "POST", "/v1/acquire", `{"resource":"jobs/","holder":"w3"}`).expect(409, "no task from jobs/ can be claimed now")
	got := read[tasks.Task](ask(t, door, "GET", "/v1/tasks/jobs/a", "").expect(200))
	if got.State != "doing" || got.Holder != "w2" || got.Token != second.Token || string(got.Value) != "one" || got.MaxAttempts != 2 {
		t.Errorf("it is %+v", got)
	}
	finish := func(l v1.Lease, token, outcome string) answer {
		return ask(t, door, "POST", "/v1/finish", `{"id":"`+l.ID+`","token":`+token+`,"outcome":"`+outcome+`","result":"r"}`)
	}
	finish(second, "1", "done").expect(410, "acquire again")
	finish(second, "2", "well").expect(400, "done or failed")
	finish(second, "2", "failed").expect(200)
	finish(second, "2", "failed").expect(200) // its answer was lost
	ask(t, door, "GET", "/v1/tasks?state=todo", "").expect(200, `"jobs/a"`, `"result":"r"`)
	finish(first, "1", "done").expect(200)
	ask(t, door, "GET", "/v1/tasks?state=done", "").expect(200, `"jobs/b"`)
	ask(t, door, "GET", "/v1/tasks?state=well", "").expect(400, "todo, doing, done or failed")
	for body, said := range map[string]string{
		`{"attempts":-1}`: "-1 attempts are out of range", `{"priority":1001}`: "priority",
	} {
		ask(t, door, "PUT", "/v1/tasks/jobs/c", body).expect(400, said)
	}
	ask(t, door, "PUT", "/v1/tasks/alone", `{}`).expect(400, "no name of a task")
	ask(t, door, "POST", "/v1/acquire", `{"resource":"/","holder":"w3"}`).expect(400)
	ask(t, door, "POST", "/v1/acquire", `{"resource":"jobs//","holder":"w3"}`).expect(400)
	ask(t, door, "POST", "/v1/acquire", `{"resource":"x","holder":"w3","also":[{"resource":"jobs/"}]}`).expect(400)
}
