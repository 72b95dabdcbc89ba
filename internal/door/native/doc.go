// Package native is the door of Leasehold's own API: JSON over HTTP under /v1/, the same as commands of RESP,
// and beside it what operators ask a server (health, metrics, version).
//
// A request goes through the files in one direction: operations.go has what can be asked,
// a wire (http.go, resp_wire.go) brings it, names.go and body.go say what is wrong with what was sent,
// translate.go makes a command of it, the engine decides, and package encode or errors.go
// writes the answer. An operation knows no HTTP: call.go has what it gets instead.
// The door keeps nothing of its own between requests; what it promises is what the
// engine promises.
//
// Two kinds of request stay: an acquire that waits (acquire.go) and a watch
// (watch.go). They are counted, they end when the server drains, and neither can
// make another caller wait.
package native
