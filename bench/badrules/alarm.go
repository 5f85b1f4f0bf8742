package main

import (
	"context"
	"encoding/json"
	"net/http"

	"github.com/sluicehq/sluice/bench/internal/fleet"
	"github.com/sluicehq/sluice/bench/internal/load"
)

// series is the alarm: what is above 0 wakes somebody.
const series = "sluice_rules_faults"

// faults is the smallest number of faults that a node's status tells of.
func (r *run) faults(ctx context.Context) float64 {
	least := -1.0
	for _, n := range r.nodes {
		_, text, err := fleet.Ask(ctx, http.MethodGet, "http://"+n.Admin+"/v1/status", nil)
		if err != nil {
			r.b.Fatal(err)
		}
		var status struct {
			Rules struct {
				Faults []struct {
					Warning bool `json:"warning"`
				} `json:"faults"`
			} `json:"rules"`
		}
		if err := json.Unmarshal([]byte(text), &status); err != nil {
			r.b.Fatal(err)
		}
		found := 0.0
		for _, f := range status.Rules.Faults {
			if !f.Warning {
				found++
			}
		}
		if least < 0 || found < least {
			least = found
		}
	}
	return least
}

// metric is the smallest value of the alarm's series.
func (r *run) metric(ctx context.Context) float64 {
	least := -1.0
	for _, n := range r.nodes {
		values, err := load.Metrics(ctx, n.Admin, series)
		if err != nil {
			r.b.Fatal(err)
		}
		value := values[series]
		if least < 0 || value < least {
			least = value
		}
	}
	return least
}
