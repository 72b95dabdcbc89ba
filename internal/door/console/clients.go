package console

import (
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/access/credential"
	"github.com/leasehold/leasehold/internal/door"
)

// checkClients says what is wrong with the setting console-sign-in.
func checkClients(value string) error {
	_, err := parsePairs(strings.Split(value, ","))
	return err
}

// readClients returns what this server is to the issuers with which people sign in.
func readClients(s door.Settings) (map[string]credential.Client, error) {
	ids, err := parsePairs(strings.Split(s["console-sign-in"], ","))
	if err != nil {
		return nil, err
	}
	secrets, err := readSecrets(s["console-sign-in-secrets"])
	if err != nil {
		return nil, &leasehold.Error{Code: leasehold.Invalid, Message: "console-sign-in-secrets: " + err.Error()}
	}
	scopes := strings.Fields(s["console-sign-in-scopes"])
	if !slices.Contains(scopes, "openid") {
		scopes = append([]string{"openid"}, scopes...) // without it there is no ID token
	}
	clients := map[string]credential.Client{}
	for name, id := range ids {
		clients[name] = credential.Client{ID: id, Secret: secrets[name], Scopes: scopes}
		delete(secrets, name)
	}
	for name := range secrets {
		return nil, &leasehold.Error{Code: leasehold.Invalid, Message: fmt.Sprintf(
			"console-sign-in-secrets has a secret for issuer %s, which console-sign-in does not name",
			door.Brief(name))}
	}
	return clients, nil
}

func readSecrets(file string) (map[string]string, error) {
	if file == "" {
		return nil, nil
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	return parsePairs(strings.Split(string(text), "\n"))
}

// parsePairs reads texts that are NAME=VALUE; those that are empty are left out.
func parsePairs(texts []string) (map[string]string, error) {
	pairs := map[string]string{}
	for i, text := range texts {
		if text = strings.TrimSpace(text); text == "" {
			continue
		}
		name, value, ok := strings.Cut(text, "=")
		if !ok || name == "" || value == "" {
			return nil, fmt.Errorf("entry %d is not ISSUER=VALUE", i+1) // which may be a secret, and is not shown
		}
		if _, twice := pairs[name]; twice {
			return nil, fmt.Errorf("issuer %s is named twice", door.Brief(name))
		}
		pairs[name] = value
	}
	return pairs, nil
}
