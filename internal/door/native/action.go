package native

import (
	"reflect"
	"sync"

	v1 "github.com/leasehold/leasehold/api/v1"
	"github.com/leasehold/leasehold/internal/core"
	"github.com/leasehold/leasehold/internal/door/native/translate"
)

// An action is what is done for a request. Most are one command of the core: those say how the command is made, and how
// its answer is told, so that a wire can hand the commands of many requests over together.
type action struct {
	body reflect.Type // what the request says, beside its parameters; nil: nothing
	bare bool         // all of that may be left out

	serve func(*call) error // nil: it is a command

	command func(*call) (core.Command, error)
	reply   func(*call, core.Command, core.Answer) error
	failed  func(*call, core.Command, error) error // says what went wrong in other words; nil: it does not

	// longer carries out a request that takes longer than its command, or more than one; false: it does not. Nil: none
	// does.
	longer func(*call, core.Command) (bool, error)
}

// asks makes an action without a body.
func asks(serve func(*call) error) action { return action{serve: serve} }

// sends makes an action with a body.
func sends[T any](serve func(*call, *T) error) action { return sendsUpTo(v1.MaxBody, serve) }

// sendsUpTo makes an action with a body of at most that many bytes.
func sendsUpTo[T any](most int, serve func(*call, *T) error) action {
	return action{body: reflect.TypeFor[T](), serve: func(c *call) error {
		body := new(T)
		if err := readWhole(c, body, most); err != nil {
			return err
		}
		return serve(c, body)
	}}
}

// maySend makes an action with a body of which every field may be left out, and so all.
func maySend[T any](serve func(*call, *T) error) action {
	return action{body: reflect.TypeFor[T](), bare: true, serve: func(c *call) error {
		body := new(T)
		if _, err := c.read(body, v1.MaxBody); err != nil {
			return err
		}
		return serve(c, body)
	}}
}

// readWhole reads a body that has to be there.
func readWhole[T any](c *call, body *T, most int) error {
	some, err := c.read(body, most)
	if err == nil && !some {
		return invalid("the body is empty: send a JSON object")
	}
	return err
}

// does makes an action of a command that is made without a body.
func does[C core.Command](to func(*call) (C, error), reply func(*call, C, core.Answer) error) action {
	return action{
		command: func(c *call) (core.Command, error) { return to(c) },
		reply: func(c *call, command core.Command, answer core.Answer) error {
			return reply(c, command.(C), answer)
		},
	}
}

// doesWith makes an action of a command that is made of a body. The body is not kept: a used one is filled again.
func doesWith[T any, C core.Command](to func(*call, *T) (C, error), reply func(*call, C, core.Answer) error) action {
	return doesUpTo(v1.MaxBody, to, reply)
}

// translated makes a command of a body alone.
func translated[T any, C core.Command](to func(translate.Command, *T) (C, error)) func(*call, *T) (C, error) {
	return func(c *call, body *T) (C, error) { return to(c.asked(c.path("path")), body) }
}

// asked is what the request says beside its body.
func (c *call) asked(path string) translate.Command {
	return translate.Command{Namespace: c.namespace, Path: path, Once: c.once}
}

// doesUpTo makes an action of a command that is made of a body of at most that many bytes.
func doesUpTo[T any, C core.Command](most int, to func(*call, *T) (C, error),
	reply func(*call, C, core.Answer) error) action {
	a := does(nil, reply)
	a.body, a.command = reflect.TypeFor[T](), commandOf(to, func(c *call, body *T) error {
		return readWhole(c, body, most)
	})
	return a
}

// mayDoWith makes an action of a command that is made of a body which may be left out.
func mayDoWith[T any, C core.Command](to func(*call, *T) (C, error), reply func(*call, C, core.Answer) error) action {
	a := does(nil, reply)
	a.body, a.bare, a.command = reflect.TypeFor[T](), true, commandOf(to, func(c *call, body *T) error {
		_, err := c.read(body, v1.MaxBody)
		return err
	})
	return a
}

func commandOf[T any, C core.Command](to func(*call, *T) (C, error),
	read func(*call, *T) error) func(*call) (core.Command, error) {
	used := sync.Pool{New: func() any { return new(T) }}
	return func(c *call) (core.Command, error) {
		body := used.Get().(*T)
		var zero T
		*body = zero
		defer used.Put(body)
		if err := read(c, body); err != nil {
			return nil, err
		}
		return to(c, body)
	}
}

// orLonger adds how a request is carried out that takes longer than its command.
func orLonger[C core.Command](a action, longer func(*call, C) (bool, error)) action {
	a.longer = func(c *call, command core.Command) (bool, error) { return longer(c, command.(C)) }
	return a
}

// whenFailed says what went wrong in other words.
func whenFailed[C core.Command](a action, failed func(*call, C, error) error) action {
	a.failed = func(c *call, command core.Command, err error) error { return failed(c, command.(C), err) }
	return a
}
