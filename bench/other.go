//go:build !linux

package main

import (
	"fmt"
	"os"
)

func main() {
	fmt.Fprintln(os.Stderr, "the benchmark starts real servers and reads what they use from /proc: it needs Linux")
	os.Exit(1)
}
