package oracle_test

import (
	"bytes"
	"fmt"
	"testing"
	"time"

	"github.com/sluicehq/sluice/internal/oracle"
	"github.com/sluicehq/sluice/internal/oracle/workload"
	"github.com/sluicehq/sluice/internal/testredis"
	"github.com/sluicehq/sluice/redisstore/rueidisconn"
)

// The short form of make bar-exact: one process, a few thousand decisions on each topology, no wish for shares.

// calm is a cluster in which nothing fails over, however long a busy machine keeps a node waiting.
var calm = testredis.Options{NoReplicas: true, NodeTimeout: time.Minute}

func TestExact_Single(t *testing.T) {
	t.Parallel()
	server := testredis.Single(t, testredis.Options{})
	report := judge(t, workload.Config{Redis: rueidisconn.Options{Addrs: []string{server.Addr()}}, Decisions: 20_000},
		func(int) *testredis.Server { return server })
	mustBeRight(t, report, 20_000)
	if report.Ties == 0 {
		t.Error("no two charges shared a script call: callers no longer share them, or the workload is too small")
	}
}

func TestExact_Cluster(t *testing.T) {
	t.Parallel()
	cluster := testredis.Cluster(t, calm)
	report := judge(t, workload.Config{Redis: rueidisconn.Options{Addrs: cluster.Addrs(), Cluster: true}, Decisions: 10_000}, cluster.NodeBySlot)
	mustBeRight(t, report, 10_000)
	if report.Givebacks == 0 {
		t.Error("nothing was given back: no group crossed slots, or none of those was refused")
	}
}

func TestExact_FindsPlantedFaults(t *testing.T) {
	t.Parallel()
	server := testredis.Single(t, testredis.Options{})
	cluster := testredis.Cluster(t, calm)
	for i, plant := range workload.Plants() {
		t.Run(plant.Name, func(t *testing.T) {
			t.Parallel()
			cfg := workload.Config{Name: fmt.Sprintf("plant-%d", i), Decisions: 3000, Plant: plant}
			cfg.Redis = rueidisconn.Options{Addrs: []string{server.Addr()}}
			serverOf := func(int) *testredis.Server { return server }
			if plant.Cluster {
				cfg.Redis, serverOf = rueidisconn.Options{Addrs: cluster.Addrs(), Cluster: true}, cluster.NodeBySlot
			}
			report := judge(t, cfg, serverOf)
			if plant.Rare {
				plant.Sign = oracle.WrongRemaining // seen at once; what follows from it is for the bar
			}
			if report.Counts[plant.Sign] == 0 {
				t.Errorf("the oracle reports no %s:\n%s", plant.Sign, report)
			}
		})
	}
}

func judge(t *testing.T, cfg workload.Config, serverOf func(int) *testredis.Server) *oracle.Report {
	t.Helper()
	cfg.Goroutines = 32
	cfg.Rate = 2000 // suits what the race detector leaves of a machine
	var file bytes.Buffer
	if err := workload.Run(t.Context(), cfg, &file); err != nil {
		t.Fatal(err)
	}
	left, err := workload.Leftovers(cfg.Counters(), serverOf) // soon: short windows expire
	if err != nil {
		t.Fatal(err)
	}
	log, err := oracle.Read(&file)
	if err != nil {
		t.Fatal(err)
	}
	return oracle.Check(log, left)
}

func mustBeRight(t *testing.T, report *oracle.Report, decisions int) {
	t.Helper()
	t.Log(report)
	if report.Decisions != decisions || report.Wrong() != 0 || report.Leftovers != workload.Counters {
		t.Errorf("got %d decisions, %d findings, %d leftovers compared; want %d, 0, %d:\n%s",
			report.Decisions, report.Wrong(), report.Leftovers, decisions, workload.Counters, report)
	}
	for a, share := range report.Algorithms {
		if share.Refused == 0 || share.Refused == share.Charges {
			t.Errorf("algorithm %d refused %d of %d charges: the workload does not test it", a, share.Refused, share.Charges)
		}
	}
}
