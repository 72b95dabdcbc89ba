// Package lease has the commands that act on leases: acquire, renew, release, break and more.
package lease
