package azure

import (
	"strings"
	"testing"

	"github.com/leasehold/leasehold/internal/door"
)

func TestSettingsNeedCertificates(t *testing.T) {
	for given, want := range map[string]string{
		"azure-listen=127.0.0.1:8443":                                   "--azure-cert",
		"azure-listen=8443 azure-cert=c azure-key=k":                    "host:port",
		"azure-domain=UPPER":                                            "lower case",
		"azure-listen=:1 azure-cert=c azure-key=k azure-secret-file=":   "--azure-secret-file",
		"azure-listen=0.0.0.0:8443 azure-cert=c.pem azure-key=k.pem":    "",
		"azure-listen= azure-cert=c.pem azure-domain=leasehold.example": "",
	} {
		settings, problems := door.Settings{}, []error(nil)
		for _, s := range Kind.Settings {
			settings[s.Name] = s.Default
		}
		for _, one := range strings.Fields(given) {
			name, value, _ := strings.Cut(one, "=")
			settings[name] = value
		}
		for _, s := range Kind.Settings {
			if s.Check != nil {
				problems = append(problems, s.Check(settings[s.Name]))
			}
		}
		err := door.First(append(problems, Kind.Check(settings))...)
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v", given, err)
		}
	}
}
