package config

import (
	"errors"
	"fmt"
	"strings"
)

// Azure is what the door for Azure's clients needs to know.
type Azure struct {
	Listen   string // empty: there is no such door
	Cert     string
	Key      string
	Accounts string
	Secret   string
	Domain   string
}

// azureKeys are the settings of that door.
func azureKeys() []Key {
	return []Key{
		{Name: "azure-listen", Scope: OfServer,
			Help: "address for clients of Azure Blob Storage, with TLS; empty: none", set: setAzureListen},
		{Name: "azure-cert", Scope: OfServer,
			Help: "file with the certificate for --azure-listen, and those that vouch for it, in PEM", set: setText(func(c *Config) *string { return &c.Server.Azure.Cert })},
		{Name: "azure-key", Scope: OfServer,
			Help: "file with its private key, in PEM", set: setText(func(c *Config) *string { return &c.Server.Azure.Key })},
		{Name: "azure-accounts", Scope: OfServer, Default: "leasehold-azure/accounts.json",
			Help: "file with the accounts and their encrypted keys; each server needs a copy", set: setText(func(c *Config) *string { return &c.Server.Azure.Accounts })},
		{Name: "azure-secret-file", Scope: OfServer, Default: "leasehold-azure/secret",
			Help: "file with the secret that encrypts them; made if it is not there, and each server needs the same", set: setText(func(c *Config) *string { return &c.Server.Azure.Secret })},
		{Name: "azure-domain", Scope: OfServer, Default: "leasehold.test",
			Help: "what the names of accounts end with, as in ACCOUNT.blob.DOMAIN", set: setAzureDomain},
	}
}

func setText(at func(*Config) *string) func(*Config, string) error {
	return func(c *Config, value string) error {
		*at(c) = value
		return nil
	}
}

func setAzureListen(c *Config, value string) error {
	c.Server.Azure.Listen = value
	if value == "" {
		return nil
	}
	_, err := host(value)
	return err
}

func setAzureDomain(c *Config, value string) error {
	c.Server.Azure.Domain = value
	if value == "" || strings.Trim(value, "abcdefghijklmnopqrstuvwxyz0123456789.-") != "" {
		return errors.New("write a domain such as leasehold.example, in lower case and without a port")
	}
	return nil
}

// complete refuses a door without what it needs. Azure's clients talk TLS or not at all.
func (a Azure) complete() error {
	switch {
	case a.Listen == "":
		return nil
	case a.Cert == "" || a.Key == "":
		return fmt.Errorf("azure-listen is %q: Azure's clients want TLS, so give --azure-cert and --azure-key too", a.Listen)
	case a.Accounts == "" || a.Secret == "":
		return fmt.Errorf("azure-listen is %q: give --azure-accounts and --azure-secret-file too", a.Listen)
	}
	return nil
}
