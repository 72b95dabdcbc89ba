package run

import (
	"context"
	"os"
	"os/user"
	"sync"

	"github.com/leasehold/leasehold"
	v1 "github.com/leasehold/leasehold/api/v1"
	"github.com/leasehold/leasehold/internal/child"
	"github.com/leasehold/leasehold/internal/cli"
	"github.com/leasehold/leasehold/internal/tfstate"
)

// A lockWatch looks at the lock that was really taken. A script may start Terraform in another
// directory, or with an environment of its own: then this run does not keep the lock alive,
// and only the server knows.
type lockWatch struct {
	job     *job
	flags   *runFlags
	session string // that this run keeps alive
	who     string // as Terraform calls itself here

	mu    sync.Mutex // guards what follows
	since uint64     // the revision at which the watch began
	other uint64     // the token of a lock that was taken here, outside of the session; 0: there was none
}

func newLockWatch(e *job, f *runFlags, session string) *lockWatch {
	return &lockWatch{job: e, flags: f, session: session, who: terraformWho()}
}

// terraformWho returns the name that Terraform gives to runs of this user on this machine.
func terraformWho() string {
	name := ""
	if u, err := user.Current(); err == nil {
		name = u.Username
	}
	host, _ := os.Hostname()
	return name + "@" + host
}

// begins notes where the watch begins.
func (w *lockWatch) begins(hello v1.Hello) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.since == 0 {
		w.since = hello.Position.Revision
	}
}

// hear says at once when somebody here takes the lock outside of this run's session.
func (w *lockWatch) hear(event v1.Event) {
	if event.Kind != leasehold.Acquired.String() || event.Session == w.session || event.Holder != w.who {
		return
	}
	w.mu.Lock()
	first := w.other == 0
	w.other = event.Token
	w.mu.Unlock()
	if first {
		w.job.app.Say("warning: %s locked %s outside of this run, which does not keep that lock alive: it stays if "+
			"%s dies", event.Holder, w.flags.terraform, w.job.argv[0])
		w.job.app.Say("if %s did that, its backend block sets lock_address: leave the block empty, "+
			"backend \"http\" {}", w.job.argv[0])
	}
}

// judge says, once the command has ended, what became of the promise to keep its lock alive. The
// watch may be behind then; history is not.
func (w *lockWatch) judge(end child.End) {
	ctx, cancel := context.WithTimeout(context.Background(), farewell)
	defer cancel()
	taken, known := w.taken(ctx)
	kept := false
	for _, event := range taken {
		kept = kept || event.Session == w.session
		w.hear(event)
	}
	w.mu.Lock()
	other := w.other
	w.mu.Unlock()
	// Init locks only what it migrates.
	call, terraform := terraformCallOf(w.job.argv)
	switch {
	case other != 0:
		w.sayLeft(ctx, other)
	case end.Code != 0 || kept || !known || terraform && (!call.locks() || call.words[0] == "init"):
	default:
		w.job.app.Say("warning: %s took no lock on %s that this run could keep alive: does its configuration name "+
			"another state or lock_address, or was it told -lock=false?", w.job.argv[0], w.flags.terraform)
	}
}

// sayLeft says how to free a lock that outlived the command.
func (w *lockWatch) sayLeft(ctx context.Context, token uint64) {
	resource, err := w.job.conn.Resource(ctx, tfstate.Path(w.flags.terraform), 0)
	if err != nil || len(resource.Holders) == 0 || resource.Holders[0].Token != token {
		return
	}
	w.job.app.Say("%s is still locked by %s; if that run is over: %s", w.flags.terraform,
		cli.Because(resource.Holders[0].Holder, resource.Holders[0].Reason),
		w.job.conn.Again("state", "unlock", w.flags.terraform, "--yes", "--reason", "its run is over"))
}

// taken returns how the lock was taken since the watch began, and whether that is all of it.
func (w *lockWatch) taken(ctx context.Context) (list []v1.Event, all bool) {
	w.mu.Lock()
	since := w.since
	w.mu.Unlock()
	page, err := w.job.conn.History(ctx, v1.HistoryQuery{Resource: tfstate.Path(w.flags.terraform), Limit: 1000})
	if err != nil || since == 0 {
		return nil, false
	}
	for _, event := range page.Items {
		if event.Kind == leasehold.Acquired.String() && event.Revision > since {
			list = append(list, event)
		}
	}
	all = page.Next == "" && !page.Gone || len(page.Items) > 0 && page.Items[0].Revision <= since
	return list, all
}
