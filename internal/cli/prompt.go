package cli

import (
	"bufio"
	"context"
	"fmt"
	"slices"
	"strings"
)

// Confirm asks the person, and returns an error unless the reply is one of the answers. The first
// is the one that the question names.
func (a *App) Confirm(ctx context.Context, question string, answers ...string) error {
	answer, err := a.ask(ctx, question)
	if err == nil && !slices.Contains(answers, answer) {
		err = Usage("the answer was not %s: nothing was done", answers[0])
	}
	return err
}

// ask reads one line from the person. The line is read in a goroutine, since a read from a terminal
// cannot be interrupted and ctrl-C has to work.
func (a *App) ask(ctx context.Context, question string) (string, error) {
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
