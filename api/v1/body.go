package v1

import (
	"encoding/json"
	"reflect"

	"github.com/leasehold/leasehold/internal/flatjson"
)

// encode returns the body of a request. It refuses text that is not UTF-8: JSON cannot carry it,
// and encoding/json would silently send another name.
func encode(body any) ([]byte, error) {
	if b, ok := flatBody(body); ok {
		return b, nil
	}
	if err := flatjson.CheckTexts(reflect.ValueOf(body)); err != nil {
		return nil, err
	}
	return json.Marshal(body)
}
