package console

import (
	"encoding/json"
	"net/http"

	v1 "github.com/leasehold/leasehold/api/v1"
	"github.com/leasehold/leasehold/internal/door"
)

// refuse answers with an error.
func refuse(w http.ResponseWriter, _ *http.Request, err error) {
	e, s := door.Told(w.Header(), err, door.StandingOf)
	answer(w, s.Status, door.ProblemType, v1.NewProblem(e, s.Status, s.Title))
}

// answer writes an answer that is JSON. It is about one person, so nothing on the way may keep it.
func answer(w http.ResponseWriter, status int, kind string, body any) {
	text, _ := json.Marshal(body) // of types that always can be
	h := w.Header()
	secure(h)
	h.Set("Content-Type", kind)
	h.Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_, _ = w.Write(append(text, '\n'))
}
