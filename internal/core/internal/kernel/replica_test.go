package kernel_test

import (
	"fmt"
	"iter"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/leasehold/leasehold/internal/core"
)

// render writes all that a state keeps, in the order in which it keeps it. Two
// states are the same if and only if this text is.
func render(s *core.State) string {
	var text strings.Builder
	for r := range s.Pieces() {
		fmt.Fprintf(&text, "%q %T ", r.Space, r.Value)
		renderValue(&text, reflect.ValueOf(r.Value))
		text.WriteByte('\n')
	}
	return text.String()
}

// renderAny writes one value with all that it points to.
func renderAny(v any) string {
	var text strings.Builder
	renderValue(&text, reflect.ValueOf(v))
	return text.String()
}

var calendarType = reflect.TypeFor[time.Time]()

func renderValue(text *strings.Builder, v reflect.Value) {
	switch {
	case v.Type() == calendarType:
		fmt.Fprint(text, v.Interface().(time.Time).UnixNano())
	case v.Kind() == reflect.Pointer && v.IsNil():
		text.WriteString("nil")
	case v.Kind() == reflect.Pointer:
		renderValue(text, v.Elem())
	case v.Kind() == reflect.Struct:
		text.WriteByte('{')
		for i := range v.NumField() {
			if f := v.Type().Field(i); f.IsExported() {
				text.WriteString(f.Name + ":")
				renderValue(text, v.Field(i))
				text.WriteByte(' ')
			}
		}
		text.WriteByte('}')
	case v.Kind() == reflect.Slice:
		text.WriteByte('[')
		for i := range v.Len() {
			renderValue(text, v.Index(i))
		}
		text.WriteByte(']')
	case v.Kind() == reflect.String:
		fmt.Fprintf(text, "%q", v.String())
	case v.CanInt():
		fmt.Fprint(text, v.Int())
	case v.CanUint():
		fmt.Fprint(text, v.Uint())
	default:
		fmt.Fprint(text, v.Interface())
	}
}

// reloaded is a state that was frozen, taken apart, and put together again by
// somebody who has nothing but the pieces.
func reloaded(t testing.TB, s *core.State) *core.State {
	t.Helper()
	again, err := core.Restore(copies(s.Freeze()))
	if err != nil {
		t.Fatalf("a snapshot can not be restored: %v", err)
	}
	return again
}

// copies are the records of a state as they would come from a file: equal, and
// sharing nothing with it.
func copies(s *core.State) iter.Seq2[core.Piece, error] {
	return func(yield func(core.Piece, error) bool) {
		for r := range s.Pieces() {
			if !yield(core.Piece{Space: r.Space, Value: copyOf(reflect.ValueOf(r.Value)).Interface()}, nil) {
				return
			}
		}
	}
}

// copyOf leaves out what is not exported, as a file would.
func copyOf(v reflect.Value) reflect.Value {
	c := reflect.New(v.Type()).Elem()
	switch {
	case v.Type() == calendarType:
		c.Set(v)
	case v.Kind() == reflect.Pointer && !v.IsNil():
		c.Set(reflect.New(v.Type().Elem()))
		c.Elem().Set(copyOf(v.Elem()))
	case v.Kind() == reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				c.Field(i).Set(copyOf(v.Field(i)))
			}
		}
	case v.Kind() == reflect.Slice && !v.IsNil():
		c.Set(reflect.MakeSlice(v.Type(), v.Len(), v.Len()))
		for i := range v.Len() {
			c.Index(i).Set(copyOf(v.Index(i)))
		}
	default:
		c.Set(v)
	}
	return c
}

// mustBeSound fails the test if the state contradicts itself.
func mustBeSound(t testing.TB, s *core.State) {
	t.Helper()
	if err := s.Check(); err != nil {
		t.Fatalf("the state contradicts itself: %v", err)
	}
}
