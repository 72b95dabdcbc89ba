// Package resp reads and writes RESP, the protocol of Redis, in both directions and in both of
// its versions. It knows neither sockets nor leases.
//
// A server reads commands with an Input and answers with a Writer. A client appends commands
// with AppendCommand, or AppendArray and AppendBulk, and reads answers with a Reader. Package
// server, below this one, serves connections.
//
// What comes in is never copied: arguments and texts are parts of the buffer that was read
// into, and are valid until the owner of the buffer says that it is done with them. Nothing is
// allocated for a command, or for a reply, once the buffers have grown to what is usual.
// Memory follows the bytes that have come, never the lengths that they announce.
package resp
