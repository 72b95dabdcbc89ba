package azure

import "github.com/leasehold/leasehold/internal/door"

var tools = []door.Tool{{ID: "azurerm", Name: "Terraform azurerm",
	What: "The azurerm backend and Azure's SDKs, at the port that a server opens with --azure-listen.",
	Text: func(p door.Place) string {
		return door.Lines(
			door.If(p.Own == "", "# The server needs --azure-listen, --azure-cert and --azure-key."),
			"leasehold azure account create prod   # on the server",
			"leasehold terraform config --azurerm demo.tfstate --account prod --server "+p.Origin+" > backend.tf")
	}}}
