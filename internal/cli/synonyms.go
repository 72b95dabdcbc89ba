package cli

import (
	"slices"

	"github.com/leasehold/leasehold/internal/config"
)

// aliases are other names of commands that do exactly the same.
var aliases = map[string][]string{
	"list":        {"ls", "ps"},
	"describe":    {"show", "inspect"},
	"acknowledge": {"ack"},
}

// meanings says which command is meant by a word from another system. Words that could mean
// several things, such as unlock, name all of them: guessing would end somebody's lease.
var meanings = func() map[string]string {
	words := map[string]string{}
	for meaning, list := range map[string][]string{
		`use "acquire NAME" to take a lease, or "run NAME -- COMMAND" to run a command under one`: {
			"lock", "trylock", "grab", "take", "hold", "lease", "semaphore", "mutex"},
		`use "release ID" to give back your own lease, or "break NAME" to end somebody else's`: {
			"unlock", "free", "drop"},
		`use "break NAME"`: {"kill", "revoke", "force-unlock", "steal", "evict"},
		`use "list" for who holds what, "describe NAME" for one resource, or "cluster status" for the servers`: {
			"status", "stat", "info"},
		`use "delete PATH" for a record, "undefine NAME" for a definition, or "break NAME" for a lease`: {
			"rm", "remove", "del", "unset"},
		`use "describe NAME"`:                        {"who", "holder", "holders", "owner"},
		`use "run NAME -- COMMAND"`:                  {"exec", "flock", "with", "do", "cron"},
		`use "renew ID"`:                             {"extend", "refresh", "heartbeat", "keepalive", "keep-alive"},
		`use "change ID"`:                            {"transfer", "handover", "hand-over"},
		`use "elect NAME -- COMMAND"`:                {"leader", "election", "campaign"},
		`use "serve"`:                                {"server", "start", "daemon"},
		`use "put PATH VALUE"`:                       {"set", "write", "create"},
		`use "get PATH"`:                             {"read", "cat"},
		`use "doctor"`:                               {"health", "ping", "diagnose"},
		`use "history NAME", "watch" or "audit"`:     {"log", "logs", "events", "tail"},
		`use "cluster status"`:                       {"members", "member", "nodes", "peers"},
		`use "backup FILE"`:                          {"snapshot", "dump", "export"},
		`use "define NAME"`:                          {"policy", "capacity", "limit"},
		`use "acquire NAME --wait 5m"`:               {"wait", "enqueue"},
		`use "config show", or "help configuration"`: {"env", "settings"},
		`use "help all"`:                             {"commands", "usage", "man"},
	} {
		for _, word := range list {
			words[word] = meaning
		}
	}
	return words
}()

// Meanings returns the words of other systems, and what is said about each.
func Meanings() map[string]string { return meanings }

// alike are words that people take for each other below a noun, such as state ls.
var alike = [][]string{
	{"list", "ls", "ps", "all"},
	{"show", "describe", "get", "info", "inspect", "cat", "status"},
	{"remove", "delete", "rm", "del", "destroy"},
	{"create", "add", "new", "make"},
	{"pull", "download", "read"},
	{"push", "upload", "write", "put"},
	{"unlock", "force-unlock", "break", "release"},
	{"versions", "history", "log"},
}

// nearestCommand returns the command that was probably meant, or "".
func nearestCommand(name string, known []string) string {
	for _, words := range alike {
		if !slices.Contains(words, name) {
			continue
		}
		for _, word := range words {
			if slices.Contains(known, word) {
				return word
			}
		}
	}
	return config.Nearest(name, known)
}

// flagSynonyms are flags of other programs, and ours that do it. One counts only where a command
// has it.
var flagSynonyms = map[string]string{
	"json": "output json", "format": "output", "timeout": "wait", "owner": "holder", "name": "holder",
	"force": "yes", "url": "server", "host": "server", "addr": "server", "endpoint": "server",
	"endpoints": "server", "message": "reason", "why": "reason", "duration": "ttl", "expire": "ttl",
	"lease-id": "id", "count": "slots", "limit": "capacity", "meta": "label", "cacert": "ca",
}
