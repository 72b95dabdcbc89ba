package terraform

import (
	"net/url"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/door"
)

var tools = []door.Tool{{ID: "terraform", Name: "Terraform",
	What: "The http backend, unmodified: states are kept and locked here.",
	Text: func(p door.Place) string {
		state, query, and := p.Origin+"/terraform/prod/network", "", "?"
		if p.Namespace != leasehold.DefaultNamespace {
			query, and = "?namespace="+url.QueryEscape(p.Namespace), "&"
		}
		return door.Lines("terraform {", `  backend "http" {`,
			`    address        = "`+state+query+`"`,
			`    lock_address   = "`+state+query+and+`wait=10m0s"`,
			`    unlock_address = "`+state+query+`"`, "  }", "}",
			door.If(p.Access, "# TF_HTTP_USERNAME=ci TF_HTTP_PASSWORD=lh_… in the environment"))
	}}}
