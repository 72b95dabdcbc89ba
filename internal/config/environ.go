package config

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// The variables that leasehold run sets for the command that it runs, beside those of
// settings. They say what is held and are no settings.
const (
	EnvResource = EnvPrefix + "RESOURCE"
	EnvID       = EnvPrefix + "ID"
	EnvToken    = EnvPrefix + "TOKEN"
	EnvExpires  = EnvPrefix + "EXPIRES"
	EnvUnits    = EnvPrefix + "UNITS"
	EnvHeld     = EnvPrefix + "HELD"
	EnvAdopts   = EnvPrefix + "ADOPTS" // processes that the lease was taken for, by their numbers with commas

	// EnvAccessToken has what EnvToken was for leasehold run itself, if that proves who asks.
	EnvAccessToken = EnvPrefix + "ACCESS_TOKEN"

	// Those of leasehold claim.
	EnvTask      = EnvPrefix + "TASK"
	EnvTaskValue = EnvPrefix + "TASK_VALUE"
)

// ForCommands are all of them.
var ForCommands = []string{EnvResource, EnvID, EnvToken, EnvExpires, EnvUnits, EnvHeld, EnvAdopts, EnvAccessToken,
	EnvTask, EnvTaskValue}

// environ reads the variables that are ours. An empty one counts as not set:
// files for containers often cannot leave one out.
func environ(all []string, doors []Door) (layer, error) {
	names := map[string]string{}
	for _, key := range Keys(doors...) {
		names[key.Env()] = key.Name
	}
	l, problems := layer{}, []error(nil)
	for _, entry := range all {
		name, value, _ := strings.Cut(entry, "=")
		key, known := names[name]
		switch {
		case !strings.HasPrefix(name, EnvPrefix), value == "", foreign(name, value), slices.Contains(ForCommands, name):
		case known:
			l[key] = given{value, name}
		default:
			problems = append(problems, fmt.Errorf("%s is not a variable that leasehold knows%s",
				name, meant(name, knownNames(doors, Key.Env))))
		}
	}
	return l, errors.Join(problems...)
}

// Kubernetes gives every pod variables that are named after the services around
// it. One called leasehold, or leasehold-something, must not stop its own pods.
var (
	serviceName = regexp.MustCompile(`_(SERVICE_HOST|SERVICE_PORT(_[A-Z0-9_]+)?|` +
		`PORT_[0-9]+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?)$`)
	serviceValue = regexp.MustCompile(`^(tcp|udp|sctp)://`)
)

func foreign(name, value string) bool {
	return serviceName.MatchString(name) || strings.HasSuffix(name, "_PORT") && serviceValue.MatchString(value)
}

func knownNames(doors []Door, of func(Key) string) (names []string) {
	for _, key := range Keys(doors...) {
		names = append(names, of(key))
	}
	return names
}
