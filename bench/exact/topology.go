package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/sluicehq/sluice/internal/oracle"
	"github.com/sluicehq/sluice/internal/oracle/workload"
	"github.com/sluicehq/sluice/internal/testredis"
	"github.com/sluicehq/sluice/redisstore/rueidisconn"
)

const (
	processes  = 4
	goroutines = 32 // in each
	// rate is the units per second that a hot counter admits. The workload moves its costs until half is refused, from
	// 1 to 100 a charge, so this suits machines from about a fifth to five times as fast.
	rate = 8000
	// runLimit ends a run that hangs.
	runLimit = 150 * time.Second
)

// topology is a Redis of some shape.
type topology struct {
	name     string
	redis    rueidisconn.Options
	serverOf func(slot int) *testredis.Server
	dir      string
	runs     int
}

func newSingle(tb *testredis.Main) *topology {
	server := testredis.Single(tb, testredis.Options{})
	return &topology{
		name:     "single",
		redis:    rueidisconn.Options{Addrs: []string{server.Addr()}},
		serverOf: func(int) *testredis.Server { return server },
		dir:      tb.TempDir(),
	}
}

func newCluster(tb *testredis.Main) *topology {
	// The long node timeout is for machines that do not let a node run for a second: nothing is to fail over here.
	set := testredis.Cluster(tb, testredis.Options{NoReplicas: true, NodeTimeout: time.Minute})
	return &topology{
		name:     "cluster",
		redis:    rueidisconn.Options{Addrs: set.Addrs(), Cluster: true},
		serverOf: set.NodeBySlot,
		dir:      tb.TempDir(),
	}
}

// part is what one worker is told.
type part struct {
	Name      string
	Addrs     []string
	Cluster   bool
	Process   uint32
	Decisions int
	Plant     string // by name; empty: none
	Log       string // path
}

// run lets the workers decide, reads their logs and what Redis is left with, and has the oracle judge it.
func (t *topology) run(decisions int, plant *workload.Plant) (*oracle.Report, error) {
	t.runs++
	parts := make([]part, processes)
	for i := range parts {
		parts[i] = part{
			Name:      fmt.Sprintf("run-%d", t.runs),
			Addrs:     t.redis.Addrs,
			Cluster:   t.redis.Cluster,
			Process:   uint32(i),
			Decisions: (decisions + i) / processes,
			Log:       filepath.Join(t.dir, fmt.Sprintf("run-%d-%d.log", t.runs, i)),
		}
		if plant != nil {
			parts[i].Plant = plant.Name
		}
	}
	if err := runWorkers(parts); err != nil {
		return nil, err
	}
	cfg := parts[0].config()
	left, err := workload.Leftovers(cfg.Counters(), t.serverOf) // before the logs are read: short windows expire
	if err != nil {
		return nil, err
	}
	log, err := readLogs(parts)
	if err != nil {
		return nil, err
	}
	return oracle.Check(log, left), nil
}

// runWorkers starts this program again for each part, and returns when all have ended.
func runWorkers(parts []part) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), runLimit)
	defer cancel()
	commands := make([]*exec.Cmd, len(parts))
	for i := range parts {
		text, err := json.Marshal(parts[i])
		if err != nil {
			return err
		}
		commands[i] = exec.CommandContext(ctx, self, "-worker", string(text))
		commands[i].Stderr = os.Stderr
		if err := commands[i].Start(); err != nil {
			return err // the others end with the context
		}
	}
	errs := make([]error, len(commands))
	for i, cmd := range commands {
		if err := cmd.Wait(); err != nil {
			errs[i] = fmt.Errorf("worker %d: %w", i, err)
		}
	}
	return errors.Join(errs...)
}

// config is the part as the workload takes it, without the fault.
func (p *part) config() workload.Config {
	return workload.Config{
		Name:       p.Name,
		Redis:      rueidisconn.Options{Addrs: p.Addrs, Cluster: p.Cluster},
		Process:    p.Process,
		Goroutines: goroutines,
		Decisions:  p.Decisions,
		Rate:       rate,
	}
}

// work is a worker's whole life.
func work(ctx context.Context, text string) error {
	var p part
	if err := json.Unmarshal([]byte(text), &p); err != nil {
		return fmt.Errorf("read a worker's part: %w", err)
	}
	cfg := p.config()
	if p.Plant != "" {
		plant, err := workload.PlantNamed(p.Plant)
		if err != nil {
			return err
		}
		cfg.Plant = plant
	}
	file, err := os.Create(p.Log)
	if err != nil {
		return err
	}
	if err := workload.Run(ctx, cfg, file); err != nil {
		return err
	}
	return file.Close()
}

func readLogs(parts []part) (*oracle.Log, error) {
	var all oracle.Log
	for i := range parts {
		file, err := os.Open(parts[i].Log)
		if err != nil {
			return nil, err
		}
		log, err := oracle.Read(file)
		_ = file.Close() // only read
		if err != nil {
			return nil, fmt.Errorf("%s: %w", parts[i].Log, err)
		}
		if err := all.Add(log); err != nil {
			return nil, err
		}
	}
	return &all, nil
}
