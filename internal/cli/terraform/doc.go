// Package terraform has the commands that set Terraform up to keep its states on a server.
package terraform
