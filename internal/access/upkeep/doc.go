// Package upkeep is what a server does about access by itself: it begins it with one admin token, lets a
// locked-out operator in again, applies the file that declares who may do what, and warns of tokens that end soon.
//
// A server that does so asks as access.System, through the log like everybody else.
package upkeep
