// Package login is the commands by which a person says who they are and where their servers are.
package login
