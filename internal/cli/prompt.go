package cli

import (
	"bufio"
	"context"
	"fmt"
	"strings"
)

// Ask reads one line from the person. The line is read in a goroutine, since a read from a terminal
// cannot be interrupted and ctrl-C has to work.
func (a *App) Ask(ctx context.Context, question string) (string, error) {
	fmt.Fprint(a.Stderr, question)
	lines := make(chan string, 1)
	go func() {
		line, _ := bufio.NewReader(a.Stdin).ReadString('\n')
		lines <- strings.TrimSpace(line)
	}()
	select {
	case line := <-lines:
		return line, nil
	case <-ctx.Done():
		fmt.Fprintln(a.Stderr)
		return "", context.Cause(ctx)
	}
}
