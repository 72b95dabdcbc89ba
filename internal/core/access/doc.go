// Package access says who may do what. It is one pure decision over values that the log keeps:
// the same policy, the same asker and the same item give the same answer on every server.
//
// A credential (a token of ours, a certificate, a JWT, …) is judged by the door that it is shown at, which
// makes an Asker of it: a principal and its groups. A Policy has roles, which are sets of verbs, and
// bindings, which give a role to a principal or a group for a namespace and a prefix of paths. Nothing is
// allowed that no binding allows. Compile gathers what one asker may do into a Permit, which is asked
// for each item that a command touches and for each item that a read would show.
//
// A verb is given for anything, or for one's own only: what the same principal, or the group through
// whose binding it was acquired, holds.
package access
