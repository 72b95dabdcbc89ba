package kernel_test

import (
	"testing"
	"time"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/core"
)

// nextLevel is one that no release knows.
const nextLevel = core.NewestLevel + 1

// Limits decide inside Apply. One that changes is a new rule of the next level: the servers
// that are at this one must go on deciding by the old.
func TestLimitsOfLevel1(t *testing.T) {
	for name, limit := range map[string][2]int64{
		"MaxName": {leasehold.MaxName, 1024}, "MaxLabels": {leasehold.MaxLabels, 4096},
		"MinTTL": {int64(leasehold.MinTTL), int64(100 * time.Millisecond)}, "MaxTTL": {int64(leasehold.MaxTTL), int64(720 * time.Hour)},
		"MaxWait": {int64(leasehold.MaxWait), int64(24 * time.Hour)}, "MaxGrace": {int64(leasehold.MaxGrace), int64(24 * time.Hour)},
		"MaxHold": {int64(leasehold.MaxHold), int64(8760 * time.Hour)}, "MaxClaimsPerSession": {leasehold.MaxClaimsPerSession, 16384},
		"MaxQueue": {leasehold.MaxQueue, 100000}, "MaxPriority": {leasehold.MaxPriority, 1000}, "MaxNamespaces": {leasehold.MaxNamespaces, 4096},
		"MaxCapacity": {leasehold.MaxCapacity, 65536}, "MaxUnits": {leasehold.MaxUnits, 1024}, "MaxUnitNames": {leasehold.MaxUnitNames, 32768},
		"MaxTogether": {leasehold.MaxTogether, 64}, "MaxDefinitions": {leasehold.MaxDefinitions, 10000},
		"MaxValue": {leasehold.MaxValue, 64 << 10}, "MaxRecords": {leasehold.MaxRecords, 4000000}, "MaxRecordBytes": {leasehold.MaxRecordBytes, 1 << 30},
		"MaxDeletedAtOnce": {leasehold.MaxDeletedAtOnce, 10240}, "MaxPage": {leasehold.MaxPage, 1000}, "MaxPageBytes": {leasehold.MaxPageBytes, 1 << 20},
		"MaxOps": {leasehold.MaxOps, 128}, "MaxTxn": {leasehold.MaxTxn, 768 << 10}, "MaxLarge": {leasehold.MaxLarge, 256 << 20},
		"MaxKeep": {leasehold.MaxKeep, 1000}, "MaxVersions": {leasehold.MaxVersions, 1000000}, "KeepDeleted": {int64(leasehold.KeepDeleted), int64(720 * time.Hour)},
	} {
		if limit[0] != limit[1] {
			t.Errorf("%s is %d, and by the rules of level 1 it is %d: keep that for level 1, and let the new one be a rule of a newer level", name, limit[0], limit[1])
		}
	}
}

func TestALevelIsOnlyRaised(t *testing.T) {
	s := core.New()
	for _, to := range []core.Level{0, core.OldestLevel - 1, core.OldestLevel} {
		if err := s.Raise(to); err == nil {
			t.Errorf("from %d it was raised to %d", core.OldestLevel, to)
		}
	}
	if s.Level() != core.OldestLevel {
		t.Errorf("it is at %d", s.Level())
	}
	if err := s.Raise(nextLevel); err != nil || s.Level() != nextLevel {
		t.Errorf("it is at %d: %v", s.Level(), err)
	}
	if again := reloaded(t, s); again.Level() != nextLevel {
		t.Errorf("read back it is at %d", again.Level())
	}
}
