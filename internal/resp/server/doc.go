// Package server serves connections that speak RESP. It knows the protocol and its connection
// commands (HELLO, AUTH, PING, CLIENT and others), and nothing of leases: a door brings the
// commands.
//
// # Batches
//
// All whole commands that have arrived are one batch: they begin, are handed over together by
// one Submit, awaited, and their answers leave by one write; then the next batch is read. So a
// connection that pipelines, or many that are busy, share what is expensive: a sync, and a
// system call.
//
// A Command does one of two things:
//
//   - It begins and is answered later. Begin looks at the arguments and adds what is to be done
//     to the Batch, of which there is one for all calls of a batch, and returns without
//     blocking. Call.Done, by any goroutine, says that it is done. When all calls of the batch
//     are, Answer writes each answer, in the order in which the commands came. Nothing is
//     allocated for a call: Call.State is kept from use to use for the owner of the commands.
//   - It runs. Run may block. It begins when all earlier commands of its connection are
//     answered, and later ones wait for it. What may take long calls Call.Wait first.
//
// Begin and Answer are called by the goroutine of one connection, or by the loop that many share:
// neither may block. On Linux, plain TCP connections are in a loop when there are many of them
// (Config.Crowd), so that what comes on all of them at the same time is one batch. What may
// block is never done in the loop: a command that runs, a client that does not read, a batch
// that takes long.
//
// # Pushes
//
// Conn.Push may be called at any time, by any goroutine. What is pushed while a command is
// carried out leaves after its answer, unless the command called Call.Wait.
//
// # Ends
//
// A connection ends when its client leaves, sends what is not RESP, begins a command and does
// not finish it in time, or does not read what it is sent. Conn.Context is done then. When the
// server drains, what is under way is finished, and what comes later is refused.
package server
