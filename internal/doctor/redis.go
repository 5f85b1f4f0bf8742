package doctor

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/rueidis"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/internal/config"
	"github.com/sluicehq/sluice/redisstore"
	"github.com/sluicehq/sluice/redisstore/rueidisconn"
)

// examineRedis asks the server about itself, and the store for a decision.
func examineRedis(ctx context.Context, cfg *config.Config, opts rueidisconn.Options, client rueidis.Client) []Finding {
	text, err := client.Do(ctx, client.B().Info().Build()).ToString()
	if err != nil {
		return []Finding{
			{"redis", Warning, "INFO: " + err.Error(), "let the user run INFO (ACL +info) while sluice doctor looks; serving does not need it"},
			scripts(ctx, opts),
		}
	}
	info := parseInfo(text)
	return []Finding{
		mode(info, opts), version(info), eviction(info), expiry(info),
		clock(ctx, client), latency(ctx, cfg, client), scripts(ctx, opts),
	}
}

// parseInfo reads the reply of INFO.
func parseInfo(text string) map[string]string {
	info := map[string]string{}
	for line := range strings.Lines(text) {
		if name, value, found := strings.Cut(strings.TrimSpace(line), ":"); found {
			info[name] = value
		}
	}
	return info
}

func mode(info map[string]string, opts rueidisconn.Options) Finding {
	const topic = "redis mode"
	switch actual := info["redis_mode"]; {
	case actual == "cluster" && !opts.Cluster:
		return Finding{topic, Fault, "the server is a Cluster node, redis.url names a single server", "write the URL as redis+cluster://host:port,host:port"}
	case actual != "cluster" && opts.Cluster:
		return Finding{topic, Fault, "the server is no Cluster node, redis.url names a Cluster", "write the URL as redis://host:port"}
	case opts.SentinelMaster != "":
		return Finding{Topic: topic, Grade: Fine, Found: "master " + opts.SentinelMaster + " behind Sentinel"}
	case info["role"] == "slave":
		return Finding{topic, Fault, "the server is a replica, which takes no writes", "name its master in redis.url, or use redis+sentinel://"}
	default:
		return Finding{Topic: topic, Grade: Fine, Found: actual}
	}
}

func version(info map[string]string) Finding {
	if v := info["valkey_version"]; v != "" {
		return Finding{Topic: "redis version", Grade: Fine, Found: "Valkey " + v}
	}
	v := info["redis_version"]
	major, _, _ := strings.Cut(v, ".")
	if n, err := strconv.Atoi(major); err != nil || n < 7 {
		return Finding{"redis version", Warning, "Redis " + v + " was not tested", "use Redis 7.0 or later, or Valkey 8"}
	}
	return Finding{Topic: "redis version", Grade: Fine, Found: "Redis " + v}
}

func eviction(info map[string]string) Finding {
	policy, evicted := info["maxmemory_policy"], info["evicted_keys"]
	switch {
	case policy != "" && policy != "noeviction" && info["maxmemory"] != "0":
		return Finding{
			"eviction", Fault, fmt.Sprintf("maxmemory-policy is %s: a full server forgets counters, and their subjects start afresh", policy),
			"CONFIG SET maxmemory-policy noeviction, on a Redis of sluice's own",
		}
	case evicted != "" && evicted != "0":
		return Finding{"eviction", Warning, evicted + " keys were evicted since the server started", "give Redis more memory, and sluice a Redis of its own"}
	case policy != "noeviction":
		return Finding{"eviction", Warning, "maxmemory-policy is " + policy + ", harmless only while maxmemory is not set", "CONFIG SET maxmemory-policy noeviction"}
	}
	return Finding{Topic: "eviction", Grade: Fine, Found: "noeviction, nothing evicted"}
}

// expiry looks for keys that never expire. They are not ours: all of ours do.
func expiry(info map[string]string) Finding {
	for name, value := range info {
		var keys, expires int
		if _, err := fmt.Sscanf(value, "keys=%d,expires=%d", &keys, &expires); err == nil && keys != expires {
			return Finding{
				"expiry", Warning, fmt.Sprintf("%s holds %d keys without expiry, which are not sluice's", name, keys-expires),
				"give sluice a Redis of its own, so that others' memory and commands do not slow decisions",
			}
		}
	}
	return Finding{Topic: "expiry", Grade: Fine, Found: "every key expires"}
}

func clock(ctx context.Context, client rueidis.Client) Finding {
	const topic = "clock"
	before := time.Now()
	parts, err := client.Do(ctx, client.B().Time().Build()).AsStrSlice()
	if err != nil || len(parts) != 2 {
		return Finding{topic, Warning, fmt.Sprintf("TIME: %v", err), "let the user run TIME (ACL +time): scripts need it"}
	}
	half := time.Since(before) / 2
	seconds, _ := strconv.ParseInt(parts[0], 10, 64)
	micros, _ := strconv.ParseInt(parts[1], 10, 64)
	skew := time.Unix(seconds, micros*1000).Sub(before.Add(half)).Round(time.Millisecond)
	if skew.Abs() > time.Second {
		return Finding{topic, Warning, fmt.Sprintf("Redis' clock differs from this host's by %s: limits are right, X-RateLimit-Reset is not", skew), "run NTP on both"}
	}
	return Finding{Topic: topic, Grade: Fine, Found: fmt.Sprintf("differs from Redis' by %s", skew)}
}

// pings is how many round trips the median is taken of.
const pings = 51

func latency(ctx context.Context, cfg *config.Config, client rueidis.Client) Finding {
	times := make([]time.Duration, 0, pings)
	for range pings {
		began := time.Now()
		if err := client.Do(ctx, client.B().Ping().Build()).Error(); err != nil {
			return Finding{"latency", Fault, "PING: " + err.Error(), "let the user run PING (ACL +ping), and look at Redis' log"}
		}
		times = append(times, time.Since(began))
	}
	slices.Sort(times)
	median, slow := times[pings/2], times[pings*19/20]
	found := fmt.Sprintf("round trip %s, one in twenty above %s", median.Round(time.Microsecond), slow.Round(time.Microsecond))
	if timeout := cfg.Limiter.Timeout.Std(); slow > timeout/2 {
		return Finding{"latency", Warning, fmt.Sprintf("%s; decisions have %s", found, timeout), "run the node near its Redis, or raise limiter.timeout"}
	}
	return Finding{Topic: "latency", Grade: Fine, Found: found}
}

// scripts makes a decision, as serving does.
func scripts(ctx context.Context, opts rueidisconn.Options) Finding {
	conn, err := rueidisconn.New(opts)
	if err != nil {
		return Finding{"scripts", Fault, err.Error(), "correct redis.url"}
	}
	defer conn.Close()
	limiter := sluice.New(redisstore.New(conn, redisstore.Options{}), sluice.PerKey(sluice.PerMinute(1000)), sluice.Options{Timeout: patience})
	d, err := limiter.Check(ctx, sluice.Request{Subject: sluice.Subject{User: "sluice doctor"}, Refundable: true})
	if err == nil {
		err = d.StoreErr
	}
	if err != nil {
		return Finding{"scripts", Fault, "a decision: " + err.Error(), "give the user the commands and keys listed in docs/redis.md"}
	}
	return Finding{Topic: "scripts", Grade: Fine, Found: "a decision was made and counted"}
}
