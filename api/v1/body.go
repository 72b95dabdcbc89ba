package v1

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"unicode/utf8"
)

// encode returns the body of a request. It refuses text that is not UTF-8: JSON cannot carry it,
// and encoding/json would silently send another name.
func encode(body any) ([]byte, error) {
	if err := checkTexts(reflect.ValueOf(body)); err != nil {
		return nil, err
	}
	return json.Marshal(body)
}

// checkTexts reports the first text in a request that is not UTF-8.
func checkTexts(v reflect.Value) error {
	for i := range v.NumField() {
		name, _, _ := strings.Cut(v.Type().Field(i).Tag.Get("json"), ",")
		switch field := v.Field(i).Interface().(type) {
		case string:
			if !utf8.ValidString(field) {
				return fmt.Errorf("%s %q is not valid UTF-8", name, field)
			}
		case map[string]string:
			for key, value := range field {
				if !utf8.ValidString(key + value) {
					return fmt.Errorf("%s: %q is not valid UTF-8", name, key+"="+value)
				}
			}
		case []string:
			for _, s := range field {
				if !utf8.ValidString(s) {
					return fmt.Errorf("%s: %q is not valid UTF-8", name, s)
				}
			}
		case *AcquireRequest:
			if field != nil {
				if err := checkTexts(v.Field(i).Elem()); err != nil {
					return err
				}
			}
		case []Compare, []Op, []AcquireItem:
			for n := range v.Field(i).Len() {
				if err := checkTexts(v.Field(i).Index(n)); err != nil {
					return fmt.Errorf("%s %d: %w", name, n+1, err)
				}
			}
		}
	}
	return nil
}
