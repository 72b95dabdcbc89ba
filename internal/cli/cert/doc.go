// Package cert has the commands that make and show certificates.
package cert
