//go:build !linux

package client

func systemClock() Clock { return newGoClock() }
