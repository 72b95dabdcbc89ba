package config

import (
	"strings"
	"testing"
)

func TestAzureNeedsCertificates(t *testing.T) {
	for flags, want := range map[string]string{
		"azure-listen=127.0.0.1:8443":                                   "--azure-cert",
		"azure-listen=8443 azure-cert=c azure-key=k":                    "host:port",
		"azure-domain=UPPER":                                            "lower case",
		"azure-listen=:1 azure-cert=c azure-key=k azure-secret-file=":   "--azure-secret-file",
		"azure-listen=0.0.0.0:8443 azure-cert=c.pem azure-key=k.pem":    "",
		"azure-listen= azure-cert=c.pem azure-domain=leasehold.example": "",
	} {
		given := map[string]string{}
		for _, flag := range strings.Fields(flags) {
			name, value, _ := strings.Cut(flag, "=")
			given[name] = value
		}
		_, _, err := ForServer(Sources{Flags: given})
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v", flags, err)
		}
	}
}
