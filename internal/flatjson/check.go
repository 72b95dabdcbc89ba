package flatjson

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"unicode/utf8"
)

// CheckTexts reports the first text in a request, of any form, that is not UTF-8.
func CheckTexts(request reflect.Value) error {
	for i := range request.NumField() {
		name, _, _ := strings.Cut(request.Type().Field(i).Tag.Get("json"), ",")
		if err := checkField(name, request.Field(i)); err != nil {
			return err
		}
	}
	return nil
}

func checkField(name string, v reflect.Value) error {
	switch field := v.Interface().(type) {
	case json.Marshaler: // it writes itself
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
	default:
		return checkParts(name, v)
	}
	return nil
}

// checkParts checks the objects inside a request.
func checkParts(name string, v reflect.Value) error {
	switch {
	case v.Kind() == reflect.Pointer && !v.IsNil() && v.Elem().Kind() == reflect.Struct:
		return CheckTexts(v.Elem())
	case v.Kind() == reflect.Pointer && !v.IsNil():
		return checkField(name, v.Elem())
	case v.Kind() == reflect.Slice && v.Type().Elem().Kind() == reflect.Struct:
		for n := range v.Len() {
			if err := CheckTexts(v.Index(n)); err != nil {
				return fmt.Errorf("%s %d: %w", name, n+1, err)
			}
		}
	}
	return nil
}
