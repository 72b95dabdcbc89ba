package main

import (
	"context"
	"log"
	"os"
	"strconv"
	"time"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/client"
)

// orchestrate leads the team when it is elected. Of several orchestrators one leads, and the others wait: if it dies,
// the next goes on with the tasks as they are, since they are on the server and not in its memory.
func orchestrate(ctx context.Context, c *client.Client, prompts []string) error {
	name, _ := os.Hostname()
	return c.Elect(ctx, lead, []byte(name), func(ctx context.Context, h *client.Hold) error {
		log.Printf("leading, with token %d", h.Token())
		if err := plan(ctx, c, prompts); err != nil {
			return err
		}
		return follow(ctx, c)
	})
}

// plan adds the tasks that are not there yet. A task that is done would begin again if it were added once more.
func plan(ctx context.Context, c *client.Client, prompts []string) error {
	tasks, err := c.Tasks(ctx, jobs)
	if err != nil {
		return err
	}
	there := map[string]bool{}
	for _, t := range tasks {
		there[t.Path] = true
	}
	for i, prompt := range prompts {
		path := jobs + strconv.Itoa(i+1)
		if there[path] {
			continue
		}
		if err := c.AddTask(ctx, client.NewTask{Path: path, Value: []byte(prompt)}); err != nil {
			return err
		}
	}
	return nil
}

// follow says what becomes of the tasks, until none of them is left to do. ctx ends if the lead is lost.
func follow(ctx context.Context, c *client.Client) error {
	said := map[string]leasehold.Task{}
	for tick := time.NewTicker(time.Second); ; {
		tasks, err := c.Tasks(ctx, jobs)
		if err != nil {
			return err
		}
		left := 0
		for _, t := range tasks {
			if t.State == leasehold.TaskTodo || t.State == leasehold.TaskDoing {
				left++
			}
			if before := said[t.Path]; before.State != t.State || before.Token != t.Token {
				log.Printf("%s is %s: %s %s", t.Path, t.State, t.Holder, t.Result)
			}
			said[t.Path] = t
		}
		if left == 0 {
			log.Printf("all %d tasks are finished", len(tasks))
			return nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}
