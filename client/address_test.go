package client

import (
	"crypto/tls"
	"slices"
	"testing"
)

// A server without a scheme is asked by http, also where TLS is configured.
func TestAddresses(t *testing.T) {
	c := Config{Servers: []string{"one", "https://two", "ftp://three"}, TLS: &tls.Config{}}
	want := []string{"http://one:4653", "https://two", "ftp://three"}
	if got := c.addresses(); !slices.Equal(got, want) {
		t.Errorf("the addresses are %v, want %v", got, want)
	}
}
