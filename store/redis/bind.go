package redis

import (
	"context"
	"strings"

	"github.com/redis/rueidis"
)

// A binding has the scripts whose text contains the run_id of one server. To ask for it in each call would take as
// long as half of what an acquire does besides.
//
// A text is only sent on a connection whose server has just said that this is its run_id, and a server keeps that
// for as long as it runs. So no server ever has the text for another, and a call by its hash is refused there, as
// one whose script is not known.
type binding struct{ acquire, look script }

func bind(run string) (*binding, error) {
	const hex = "0123456789abcdef"
	if run == "" || strings.Trim(run, hex) != "" { // it becomes part of a script
		return nil, refused("Redis does not say its run_id in INFO server: without it, lost leases go unnoticed")
	}
	with := func(sc script) script {
		sc.text = strings.ReplaceAll(sc.text, place, run)
		sc.hash = hashOf(sc.text)
		return sc
	}
	return &binding{with(acquireScript), with(lookScript)}, nil
}

// of returns a script as it is on the server; without a binding, one that no server has.
func (b *binding) of(sc script) script {
	switch {
	case b == nil || !sc.bound:
		return sc
	case sc.hash == lookScript.hash:
		return b.look
	}
	return b.acquire
}

// bindHere binds the scripts to the server of a connection.
func (s *Store) bindHere(ctx context.Context, c rueidis.DedicatedClient, key string) (*binding, error) {
	message, err := c.Do(ctx, c.B().Eval().Script(runScript.text).Numkeys(1).Key(key).Build()).ToMessage()
	if err != nil {
		return nil, err
	}
	a, err := parse(message)
	if err != nil {
		return nil, err
	}
	b, err := bind(text(a.rest[0]))
	if err != nil {
		return nil, err
	}
	s.bound.Store(b)
	return b, nil
}
