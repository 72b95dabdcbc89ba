// Package azure has the commands for the accounts and containers of the Azure door.
package azure
