package azure

import (
	"errors"
	"fmt"
	"net"
	"strings"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/azureaccount"
	"github.com/leasehold/leasehold/internal/certificate"
	"github.com/leasehold/leasehold/internal/door"
)

const defaultDomain = "leasehold.test"

// Kind is this door in the table of a server. It is turned off unless it has an address.
var Kind = door.Kind{Name: doorName, What: "Azure Blob Storage, for azurerm and Azure's SDKs", Tools: tools,
	Check: complete, Open: fromSettings, Settings: []door.Setting{
		{Name: "azure-listen", Check: door.CheckAddress,
			Help: "address for clients of Azure Blob Storage, with TLS; empty: none"},
		{Name: "azure-cert",
			Help: "file with the certificate for --azure-listen, and those that vouch for it, in PEM"},
		{Name: "azure-key",
			Help: "file with its private key, in PEM"},
		{Name: "azure-accounts", Default: "leasehold-azure/accounts.json",
			Help: "file with the accounts and their encrypted keys; each server needs a copy"},
		{Name: "azure-secret-file", Default: "leasehold-azure/secret",
			Help: "file with the secret that encrypts them; made if it is not there, and each server needs the same"},
		{Name: "azure-domain", Default: defaultDomain, Check: checkDomain,
			Help: "what the names of accounts end with, as in ACCOUNT.blob.DOMAIN"},
	}}

func checkDomain(value string) error {
	if value == "" || strings.Trim(value, "abcdefghijklmnopqrstuvwxyz0123456789.-") != "" {
		return errors.New("write a domain such as leasehold.example, in lower case and without a port")
	}
	return nil
}

// complete refuses a door without what it needs. Azure's clients talk TLS or not at all.
func complete(s door.Settings) error {
	switch listen := s["azure-listen"]; {
	case listen == "":
		return nil
	case s["azure-cert"] == "" || s["azure-key"] == "":
		return fmt.Errorf("azure-listen is %q: Azure's clients want TLS, so give --azure-cert and --azure-key too",
			listen)
	case s["azure-accounts"] == "" || s["azure-secret-file"] == "":
		return fmt.Errorf("azure-listen is %q: give --azure-accounts and --azure-secret-file too", listen)
	}
	return nil
}

// fromSettings opens the door, if the settings ask for one.
func fromSettings(b *door.Backend, s door.Settings) (door.Door, error) {
	if s["azure-listen"] == "" {
		return door.Door{}, nil
	}
	book, err := azureaccount.Open(s["azure-accounts"], s["azure-secret-file"])
	if err != nil {
		return door.Door{}, &leasehold.Error{Code: leasehold.Invalid, Message: err.Error()}
	}
	port := New(b, Config{Accounts: book, Domain: s["azure-domain"]}).Port()
	port.Address = s["azure-listen"]
	port.TLS = certificate.Files{Cert: s["azure-cert"], Key: s["azure-key"]}
	if host, _, err := net.SplitHostPort(port.Address); err == nil {
		port.Hosts = append(port.Hosts, host)
	}
	port.Opened = func(address string) {
		if len(book.Names()) == 0 {
			b.Log().Warn("there is no azure account yet: make one with leasehold azure account create", "file",
				s["azure-accounts"])
		}
		b.Log().Info("azure clients are served", "address", address, "accounts", len(book.Names()))
	}
	return door.Door{Port: port}, nil
}
