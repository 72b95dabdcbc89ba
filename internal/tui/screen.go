package tui

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/leasehold/leasehold/internal/cli"
	"github.com/leasehold/leasehold/internal/cli/follow"

	tea "charm.land/bubbletea/v2"

	v1 "github.com/leasehold/leasehold/api/v1"
	"github.com/leasehold/leasehold/store"
)

// Options say what is shown first.
type Options struct {
	Query v1.ResourceQuery // which resources
	Order string           // one of orderNames
}

// Run connects a board with a terminal and a server.
func Run(ctx context.Context, a *cli.App, c *cli.Conn, o Options) error {
	b := &board{prefix: o.Query.Prefix, query: o.Query, order: orderCalled(o.Order)}
	if !a.Terminal(a.Stdin) || !a.Terminal(a.Stdout) {
		return cli.Hint(cli.Usage("top draws on a terminal, and there is none here: use list --watch"), "such as: %s",
			c.Again(b.withoutTerminal()...))
	}
	b.app, b.server, b.namespace, b.now = a, store.Redact(c.Client.Server), c.Client.Namespace, a.Now()
	b.width, b.height = 80, 24 // until the terminal says what it has

	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	follower := follow.New(a, c, o.Query)
	follower.Every, follower.AsksQuarantine = follow.RenewalsEvery, true
	screen := &screen{board: b, conn: c, follow: follower, ctx: ctx}
	program := tea.NewProgram(screen, tea.WithContext(ctx), tea.WithInput(a.Stdin), tea.WithOutput(a.Stdout),
		tea.WithEnvironment(a.Environ), tea.WithoutSignalHandler())
	told := follower.Start(ctx)
	go func() {
		for n := range told {
			program.Send(newsMsg{n})
		}
	}()
	_, err := program.Run()
	if b.done != nil {
		return b.done()
	}
	if errors.Is(err, tea.ErrProgramKilled) && ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

// withoutTerminal returns the command that shows the same where there is no terminal.
func (b *board) withoutTerminal() []string {
	words := []string{"list", "--watch"}
	if b.prefix != "" {
		words = append(words, b.prefix)
	}
	if b.query.All {
		words = append(words, "--all")
	}
	return append(words, cli.FilterWords(b.query.Filter)...)
}

// A screen is the adapter between a board and the library that draws: it passes on what the
// terminal and the server say, and does what the board wants. Requests run as commands of the
// library, so that the screen never waits for a server.
type screen struct {
	*board
	conn   *cli.Conn
	follow *follow.Follower
	ctx    context.Context
}

// Init starts the ticking.
func (s *screen) Init() tea.Cmd { return s.tick() }

func (s *screen) tick() tea.Cmd {
	return tea.Tick(s.pace(), func(time.Time) tea.Msg { return tickMsg{s.app.Now()} })
}

// Update translates one message.
func (s *screen) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	var told any = msg
	switch m := msg.(type) {
	case tea.WindowSizeMsg:
		if m.Width == 0 || m.Height == 0 {
			return s, nil // a terminal that does not know
		}
		told = sizeMsg{m.Width, m.Height}
	case tea.KeyPressMsg:
		told = keyMsg{m.String(), m.Text}
	// A pasted line break must not confirm anything.
	case tea.PasteMsg:
		told = keyMsg{"", strings.Join(strings.Fields(m.Content), " ")}
	}
	todo := s.does(s.update(told))
	if s.done != nil {
		return s, tea.Quit
	}
	if _, ok := told.(tickMsg); ok {
		return s, tea.Batch(todo, s.tick())
	}
	return s, todo
}

// View draws.
func (s *screen) View() tea.View {
	v := tea.NewView(strings.Join(s.lines(), "\n"))
	v.AltScreen = true
	v.WindowTitle = "leasehold top"
	return v
}

// does returns the command that does what the board wants.
func (s *screen) does(want any) tea.Cmd {
	switch w := want.(type) {
	case wantList:
		s.follow.Again()
	case wantLook:
		return func() tea.Msg {
			asked := s.app.Now()
			resource, err := s.conn.Resource(s.ctx, w.name, v1.MaxLimit)
			return lookedMsg{w.name, w.toBreak, resource, asked, err}
		}
	case wantBreak:
		return func() tea.Msg {
			var broke brokeMsg
			for _, request := range w.requests {
				request.By = s.conn.Operator()
				if lease, err := s.conn.Break(s.ctx, request); err != nil {
					broke.err = err
				} else {
					broke.leases = append(broke.leases, lease)
				}
			}
			return broke
		}
	}
	return nil
}
