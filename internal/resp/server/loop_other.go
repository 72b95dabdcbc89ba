//go:build !linux

package server

type loop struct{}

type place struct{}

func (c *Conn) enter() bool { return false }

func (c *Conn) wake() {}

func (c *Conn) lost() bool { return false }
