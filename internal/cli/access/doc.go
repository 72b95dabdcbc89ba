// Package access is the command access: who may do what.
package access
