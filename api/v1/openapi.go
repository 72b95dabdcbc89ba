package v1

import _ "embed"

// OpenAPI describes the API for other languages and tools.
//
//go:embed openapi.yaml
var OpenAPI string
