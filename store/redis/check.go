package redis

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/leasehold/leasehold"
	"github.com/redis/rueidis"
)

// checkServers refuses servers that would lose leases, or that cannot keep them at all. In a Cluster it
// asks every node, since slots move.
func (s *Store) checkServers(ctx context.Context) error {
	for address, node := range s.client.Nodes() {
		info, err := node.Do(ctx, node.B().Info().Section("server", "memory", "replication").Build()).ToString()
		if err != nil {
			return failure(err)
		}
		if err := s.checkServer(address, info); err != nil {
			return err
		}
		if s.strict && field(info, "role") == "master" {
			if err := s.checkStrict(ctx, address, info, node); err != nil {
				return err
			}
		}
	}
	return nil
}

func (s *Store) checkServer(address, info string) error {
	version, policy := field(info, "redis_version"), field(info, "maxmemory_policy")
	if major, _, _ := strings.Cut(version, "."); version != "" {
		if n, err := strconv.Atoi(major); err == nil && n < 7 {
			return refused("Redis at %s is version %s: leases need 7.0 or later", address, version)
		}
	}
	switch policy {
	case "noeviction":
	case "":
		s.log.Warn("Redis does not say its maxmemory-policy: unless it is noeviction, leases may be evicted",
			"address", address)
	default:
		return refused("Redis at %s has maxmemory-policy %s and would evict leases when memory is full: "+
			"run redis-cli CONFIG SET maxmemory-policy noeviction, and set it in redis.conf", address, policy)
	}
	return nil
}

// checkStrict verifies what strict mode promises.
func (s *Store) checkStrict(ctx context.Context, address, info string, node rueidis.Client) error {
	config, err := node.Do(ctx, node.B().ConfigGet().Parameter("appendonly", "appendfsync").Build()).AsStrMap()
	if err != nil {
		return refused("strict mode cannot be verified: CONFIG GET appendfsync failed at %s: %v",
			address, failure(err))
	}
	if config["appendonly"] != "yes" || config["appendfsync"] != "always" {
		return refused("strict mode needs appendonly yes and appendfsync always: Redis at %s has appendonly %s and "+
			"appendfsync %s", address, config["appendonly"], config["appendfsync"])
	}
	have, err := strconv.Atoi(field(info, "connected_slaves"))
	if err != nil {
		return refused("strict mode cannot be verified: Redis at %s does not say how many replicas it has", address)
	}
	if have != s.replicas {
		return refused("strict mode waits for every replica that can be promoted: Redis at %s has %d replicas, and "+
			"replicas=%d", address, have, s.replicas)
	}
	return nil
}

// probe finds missing permissions, and the run_id.
func (s *Store) probe(ctx context.Context) error {
	keys := []string{s.names.base + "probe", s.names.base + "probe:set"}
	a, err := s.call(ctx, probeScript, keys, s.names.channel())
	if err != nil {
		return err
	}
	if a.word == "denied" {
		return &leasehold.Error{Code: leasehold.Denied, Message: fmt.Sprintf(
			"the user of Redis may not run all that leases need: see docs/stores/redis.md for the ACL (%s)",
			byCause(texts(a.rest[0])))}
	}
	b, err := bind(text(a.rest[0]))
	s.bound.Store(b)
	return err
}

// byCause names the commands of each error once: "DEL, HSET: ERR …".
func byCause(denied []string) string {
	commands := map[string][]string{}
	for _, d := range denied {
		command, cause, _ := strings.Cut(d, ": ")
		if !slices.Contains(commands[cause], command) {
			commands[cause] = append(commands[cause], command)
		}
	}
	var all []string
	for _, cause := range slices.Sorted(maps.Keys(commands)) {
		all = append(all, strings.Join(commands[cause], ", ")+": "+cause)
	}
	return strings.Join(all, "; ")
}

func refused(format string, args ...any) error {
	return &leasehold.Error{Code: leasehold.Refused, Message: fmt.Sprintf(format, args...)}
}
