// Package document is who may do what as people write it: the items of a policy as the API has them, whole documents,
// and what differs between two of them. It decides nothing.
package document
