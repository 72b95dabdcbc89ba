// Package statediff compares two versions of a Terraform state. It says what changed, and
// never shows a value: values may be secret.
package statediff
