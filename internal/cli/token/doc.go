// Package token has the commands about fencing tokens.
package token
