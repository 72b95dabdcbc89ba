package azure

import "github.com/leasehold/leasehold/internal/door"

var tools = []door.Tool{{ID: "azurerm", Name: "Terraform azurerm",
	What: "The azurerm backend and Azure’s SDKs, on the Azure door of a server that was started with it.",
	Text: func(p door.Place) string {
		return door.Lines("leasehold azure account create prod   # on the server",
			"leasehold terraform config --azurerm demo.tfstate --account prod --server "+p.Origin+" > backend.tf")
	}}}
