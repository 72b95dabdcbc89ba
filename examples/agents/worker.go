package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"os/exec"
	"path"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/client"
)

// work does one task after the other until ctx ends. What it does at that moment it finishes first.
func work(ctx context.Context, c *client.Client, command []string) error {
	for ctx.Err() == nil {
		task, err := c.Claim(ctx, jobs) // waits until there is one for this worker
		if err != nil {
			return err
		}
		log.Printf("%s: doing it, with token %d", task.Resource(), task.Token())
		switch err := do(ctx, task, command); {
		// The worker was cut off or paused for longer than its TTL, and somebody else has the task by now. The
		// server knows by the token, and keeps the result of the other one.
		case errors.Is(err, client.ErrLost):
			log.Printf("%s: the result came too late and was refused: %v", task.Resource(), err)
		case err != nil:
			return err
		}
	}
	return nil
}

// do lets the command do a task, and says what came of it. The command reads the task, prints its answer, and is ended
// if the task is lost. What it writes to elsewhere can refuse it by the token, too: see docs/fencing.md.
func do(ctx context.Context, task *client.Task, command []string) error {
	cmd := exec.CommandContext(task.Context(), command[0], command[1:]...)
	cmd.Env = append(os.Environ(), "LEASEHOLD_TASK="+task.Resource(), fmt.Sprint("LEASEHOLD_TOKEN=", task.Token()))
	cmd.Stdin, cmd.Stderr = bytes.NewReader(task.Value()), os.Stderr
	answer, err := cmd.Output()
	asked := context.WithoutCancel(ctx)
	switch {
	// An answer is sent even if this machine believes that the task is lost: that is for the server to decide.
	case err == nil, cmd.ProcessState != nil && cmd.ProcessState.Success():
		return finish(asked, task, bytes.TrimSpace(answer))
	case ctx.Err() != nil: // Ctrl-C, which the command got, too
		return task.Release(asked)
	}
	return task.Fail(asked, err.Error()) // tried again, behind the others, three times in all
}

// finish sends an answer. A long one goes into a record, which is written only while the task is held.
func finish(ctx context.Context, task *client.Task, answer []byte) error {
	if len(answer) > leasehold.MaxResult {
		record := answers + path.Base(task.Resource())
		if err := task.Put(ctx, record, answer); err != nil {
			return err
		}
		answer = []byte("see the record " + record)
	}
	return task.Done(ctx, string(answer))
}
