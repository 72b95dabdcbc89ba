// Package credential finds out who asks. It makes an access.Asker of what a request shows: a token of ours, a JWT
// of an issuer that the policy trusts, or a client certificate. What that asker may do is not decided here.
//
// A credential is judged by the policy as this server has applied it, and by the clock of this server. One that was
// found good is remembered by its hash until it ends, or the policy or the issuer's keys change: to show it again
// costs a hash and a look in a map. A refusal is never remembered; before a credential is refused that a newer policy
// might know, the newest one is read. Failed logins are slowed down by the address that they come from.
//
// Secrets stay in this package. Neither a Refusal, nor the log, nor a metric repeats any part of one.
package credential
