// Package cli is the frame of all commands: the streams, the connection to a server, flags
// and settings, output in every format, errors with their exit codes, and the words in
// which people are told something.
//
// A package below it has the commands of one noun. They decide little: what is decided,
// the server decides. What is promised to people and scripts is decided here: data goes to
// standard output, talk to standard error, and every exit code has one meaning.
package cli
