package main

import (
	"bufio"
	"context"
	"fmt"
	"strings"
)

// ask reads one line from the person, who may also press ctrl-C.
func (a *app) ask(ctx context.Context, question string) (string, error) {
	fmt.Fprint(a.stderr, question)
	lines := make(chan string, 1)
	go func() {
		line, _ := bufio.NewReader(a.stdin).ReadString('\n')
		lines <- strings.TrimSpace(line)
	}()
	select {
	case line := <-lines:
		return line, nil
	case <-ctx.Done():
		fmt.Fprintln(a.stderr)
		return "", context.Cause(ctx)
	}
}
