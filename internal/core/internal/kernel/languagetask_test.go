package kernel_test

import (
	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/core"
)

func (p *phrase) putTask() core.Command {
	return &core.PutTask{
		Path: p.word("path"), Value: p.word("value"), Priority: p.priority(), Attempts: int(p.number("attempts")), By: p.option("by", ""),
		Namespace: p.namespace(), Request: p.request(),
	}
}

func (p *phrase) finishTask() core.Command {
	return &core.FinishTask{
		ID: p.word("lease id"), Token: leasehold.Token(p.number("token")), Failed: p.verb == "fail", Result: p.option("result", ""),
		Session: p.option("session", ""), Namespace: p.namespace(), Request: p.request(),
	}
}

func writeFinish(c *core.FinishTask) string {
	verb := "finish"
	if c.Failed {
		verb = "fail"
	}
	return sentence(verb, quote(c.ID), option("token", c.Token), option("result", c.Result), option("session", c.Session), common(c.Namespace, c.Request))
}
