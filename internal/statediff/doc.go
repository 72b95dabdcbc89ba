// Package statediff compares two versions of a Terraform state. It tells what changed and
// never a value: values may be secret.
package statediff
