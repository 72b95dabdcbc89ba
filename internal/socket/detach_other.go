//go:build !linux

package socket

import "errors"

// Detach is not supported here.
func (s *Socket) Detach() (fd int, err error) { return none, errors.ErrUnsupported }

// Attach does nothing: the connection was never detached.
func (s *Socket) Attach() error { return nil }

func shutdown(int) error { return errors.ErrUnsupported }
