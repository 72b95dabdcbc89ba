package pipeline

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold/leasehold/internal/resp"
)

// outOfStep is an answer that finds its reply to be another's, at the moment at which its caller gives up.
type outOfStep struct{ giveUp func() }

func (o outOfStep) Take(*resp.Value) (bool, error) {
	o.giveUp()
	return false, ErrOutOfStep
}

// A connection whose replies cannot be trusted ends, even if the caller that reads them gives up meanwhile.
func TestAReaderThatGivesUpSeesThatRepliesAreOutOfStep(t *testing.T) {
	bubble(t, Config{}, func(t *testing.T, c *Conn, p *peer) {
		go p.echo()
		ctx, cancel := context.WithCancel(t.Context())
		answer := outOfStep{func() {
			cancel()
			for told := false; !told; runtime.Gosched() {
				c.mu.Lock()
				told = c.interrupted || c.alone == nil
				c.mu.Unlock()
			}
		}}
		err := c.Do(ctx, Request{Command: resp.AppendCommand(nil, "a"), Answer: answer})
		if err == nil {
			t.Error("it has an answer")
		}
		synctest.Wait()
		if c.Usable() {
			t.Error("the connection goes on")
		}
	})
}

// endsNow is a context that ends right after the first question whether it has.
type endsNow struct {
	context.Context
	end func()
}

func (e *endsNow) Err() error {
	err := e.Context.Err()
	if end := e.end; end != nil {
		e.end = nil
		end()
	}
	return err
}

// A context that an earlier reader had too may end just before its next reader begins.
func TestAContextEndsBeforeItsReaderBegins(t *testing.T) {
	bubble(t, Config{}, func(t *testing.T, c *Conn, p *peer) {
		go func() {
			p.say(fmt.Sprintf("+%s\r\n", p.next()))
			p.next()
		}()
		ctx, cancel := context.WithCancel(t.Context())
		if _, err := ask(ctx, c, "a"); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		ended := make(chan error, 1)
		go func() {
			_, err := ask(&endsNow{ctx, func() { cancel(); synctest.Wait() }}, c, "b")
			ended <- err
		}()
		select {
		case err := <-ended:
			if !errors.Is(err, context.Canceled) {
				t.Errorf("it ends with %v", err)
			}
		case <-time.After(time.Minute):
			t.Error("the caller waits on")
		}
	})
}

// A wait that is answered at once leaves nothing behind.
func TestAWaitThatIsAnsweredAtOnceIsForgotten(t *testing.T) {
	bubble(t, Config{}, func(t *testing.T, c *Conn, p *peer) {
		go p.echo()
		for _, tag := range []string{"a", "b"} {
			r := reply{waits: true}
			err := c.Do(t.Context(), Request{Command: resp.AppendCommand(nil, "granted"), Answer: &r, Tag: tag})
			if r.text != "granted" || err != nil {
				t.Errorf("%s is answered by %q, %v", tag, r.text, err)
			}
		}
		synctest.Wait()
		if len(c.waits) > 0 || readBy(c) != "nobody" {
			t.Errorf("%d waits are left, and it is read by %s", len(c.waits), readBy(c))
		}
	})
}

// A second reply to a command is not taken for the reply to the next one.
func TestAReplyThatNobodyAskedFor(t *testing.T) {
	bubble(t, Config{}, func(t *testing.T, c *Conn, p *peer) {
		go func() {
			p.next()
			p.say("+a\r\n+stray\r\n")
			p.echo()
		}()
		if got, err := ask(t.Context(), c, "a"); got != "a" || err != nil {
			t.Errorf("the answer is %q, %v", got, err)
		}
		synctest.Wait()
		if got, err := ask(t.Context(), c, "b"); err == nil {
			t.Errorf("the next is answered by %q", got)
		}
	})
}
