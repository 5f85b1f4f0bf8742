package testredis

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// SentinelSet is a master and its replica, watched by three sentinels of whom two must agree.
type SentinelSet struct {
	// MasterName is the name under which sentinels know the master.
	MasterName string

	data      []*Server // the master and the replica, as started
	sentinels []*Server
}

const (
	masterName    = "sluice"
	sentinelCount = 3
	quorum        = 2
	// failoverTimeout is how long sentinels wait before they try a failed failover again; Redis's
	// own three minutes would outlast the test. Too short, and a slow failover is given up.
	failoverTimeout = "5000"
)

// Sentinel starts the set and returns when every sentinel knows the master, the replica and both
// other sentinels, and the replica is in sync. It ends the test on failure.
func Sentinel(tb TB, opts Options) *SentinelSet {
	tb.Helper()
	bed := newBed(tb, opts)
	set := &SentinelSet{MasterName: masterName}
	if err := set.startData(bed); err != nil {
		tb.Fatalf("testredis: start a master and a replica: %v", err)
	}
	if err := set.startSentinels(bed); err != nil {
		tb.Fatalf("testredis: start sentinels: %v", err)
	}
	return set
}

// Addrs returns the addresses of the sentinels.
func (s *SentinelSet) Addrs() []string { return addrs(s.sentinels) }

// Sentinels returns the three sentinels.
func (s *SentinelSet) Sentinels() []*Server { return slices.Clone(s.sentinels) }

// Clock returns the clock that master and replica share. It is nil without Options.MovableClock.
func (s *SentinelSet) Clock() *Clock { return s.data[0].clock }

// Master returns the server that the sentinels hold for the master now, which may be dead: ask
// those that run, and believe the one that saw the newest failover.
func (s *SentinelSet) Master() *Server {
	best, newest := s.data[0], int64(-1)
	for _, sn := range s.sentinels {
		if !sn.responsive() {
			continue
		}
		view, err := s.view(sn)
		if err != nil {
			continue // killed this moment
		}
		epoch, err := strconv.ParseInt(view["config-epoch"], 10, 64)
		if err != nil || epoch <= newest {
			continue
		}
		for _, d := range s.data {
			if strconv.Itoa(d.port) == view["port"] {
				best, newest = d, epoch
			}
		}
	}
	return best
}

// Replica returns the server that is not the Master.
func (s *SentinelSet) Replica() *Server {
	if s.Master() == s.data[0] {
		return s.data[1]
	}
	return s.data[0]
}

// startData starts the master, then the replica, and waits until that is in sync.
func (s *SentinelSet) startData(bed *bed) error {
	master := bed.dataServer()
	if err := master.start(); err != nil {
		return err
	}
	replica := bed.dataServer("--replicaof", "127.0.0.1 "+strconv.Itoa(master.port))
	s.data = []*Server{master, replica}
	if err := replica.start(); err != nil {
		return err
	}
	return poll(readyLimit, nil, func() error { return inSync(replica) })
}

// startSentinels starts the sentinels once the replica is in sync, because they look for replicas
// when they start and then only every ten seconds.
func (s *SentinelSet) startSentinels(bed *bed) error {
	for range sentinelCount {
		sn := newServer(bed.tb, bed.binary)
		conf := filepath.Join(sn.dir, "sentinel.conf") // sentinels keep what they learn in it
		if err := os.WriteFile(conf, []byte(s.config(bed)), 0o600); err != nil {
			return err
		}
		sn.args = []string{conf, "--sentinel", "--dir", sn.dir, "--bind", "127.0.0.1", "--protected-mode", "no"}
		s.sentinels = append(s.sentinels, sn)
	}
	if err := startAll(s.sentinels); err != nil {
		return err
	}
	// Sentinels hear of each other by greetings that they send every two seconds: hurry them
	// until they have met, then let them be what they are in production.
	if err := s.greetEvery("100"); err != nil {
		return err
	}
	if err := poll(readyLimit, nil, s.met); err != nil {
		return err
	}
	return s.greetEvery("2000")
}

// config returns the file that a sentinel starts from.
func (s *SentinelSet) config(bed *bed) string {
	return strings.Join([]string{
		fmt.Sprintf("sentinel monitor %s 127.0.0.1 %d %d", s.MasterName, s.data[0].port, quorum),
		fmt.Sprintf("sentinel down-after-milliseconds %s %s", s.MasterName, millis(bed.opts.DownAfter)),
		fmt.Sprintf("sentinel failover-timeout %s %s", s.MasterName, failoverTimeout),
		"",
	}, "\n")
}

// greetEvery sets how often the sentinels greet each other, in milliseconds.
func (s *SentinelSet) greetEvery(ms string) error {
	for _, sn := range s.sentinels {
		if _, err := sn.Do("SENTINEL", "DEBUG", "PUBLISH-PERIOD", ms); err != nil {
			return err
		}
	}
	return nil
}

// met checks that every sentinel knows the others and the replica.
func (s *SentinelSet) met() error {
	for _, sn := range s.sentinels {
		view, err := s.view(sn)
		if err != nil {
			return err
		}
		if view["flags"] != "master" || view["num-slaves"] != "1" || view["num-other-sentinels"] != strconv.Itoa(sentinelCount-1) {
			return fmt.Errorf("sentinel %s sees flags %s, %s replicas, %s other sentinels", sn.Addr(),
				view["flags"], view["num-slaves"], view["num-other-sentinels"])
		}
	}
	return nil
}

// view returns what one sentinel knows about the master.
func (s *SentinelSet) view(sentinel *Server) (map[string]string, error) {
	reply, err := sentinel.Do("SENTINEL", "MASTER", s.MasterName)
	if err != nil {
		return nil, err
	}
	pairs, _ := reply.([]any)
	view := make(map[string]string, len(pairs)/2)
	for i := 0; i+1 < len(pairs); i += 2 {
		key, _ := pairs[i].(string)
		view[key], _ = pairs[i+1].(string)
	}
	return view, nil
}
