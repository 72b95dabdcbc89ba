package native

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/leasehold/leasehold"
	v1 "github.com/leasehold/leasehold/api/v1"
	"github.com/leasehold/leasehold/internal/door"
)

// problem writes an error as application/problem+json.
func problem(w http.ResponseWriter, err error) {
	e, s := door.Told(w.Header(), err, door.StandingOf)
	body, _ := json.Marshal(v1.NewProblem(e, s.Status, s.Title))
	write(w, problemType, s.Status, append(body, '\n'))
}

func unknownRoute(w http.ResponseWriter, r *http.Request) {
	problem(w, &leasehold.Error{Code: leasehold.NotFound, Message: fmt.Sprintf(
		"there is nothing at %s: the API is under /v1/, and /v1/openapi.yaml describes it", brief(r.URL.Path))})
}

func wrongMethod(allowed []string) http.HandlerFunc {
	if slices.Contains(allowed, http.MethodGet) {
		allowed = append(allowed, http.MethodHead)
	}
	allow := strings.Join(allowed, ", ")
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Allow", allow)
		problem(w,
			door.Invalidly(http.StatusMethodNotAllowed, "%s is not for %s: use %s", brief(r.URL.Path), r.Method, allow))
	}
}
