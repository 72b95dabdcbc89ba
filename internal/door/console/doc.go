// Package console serves the web console, and lets people in who use it.
//
// The pages are files that are part of the program, see package web. What they show and do goes through the public API,
// at the native door, with the rights of who has signed in: here is nothing that a program could not do there. This
// door adds two things. It serves the files, with headers that forbid a page everything but its own scripts and this
// server. And it keeps a person's credential in a cookie that scripts cannot read, which package door takes for a
// bearer token if the request comes from a page of this server.
package console
