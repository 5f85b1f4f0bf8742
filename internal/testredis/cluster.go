package testredis

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// ClusterSet is a Redis Cluster of three masters with about a third of the slots each and,
// unless Options.NoReplicas, one replica per master. view.go tells who is who at the moment.
type ClusterSet struct {
	nodes []*Server // three masters at first, then the replica of each in the same order
	ids   map[*Server]string
}

const (
	masterCount = 3
	slotCount   = 16384
	// formTimeout is the node timeout while the cluster forms, as nodes gossip twice in it: a
	// long one would take that long to spread who replicates whom.
	formTimeout = time.Second
	// masterDelay is longer than the two seconds of wall clock that a starting master lets pass
	// before it serves. Under a movable clock they pass between two steps of form.
	masterDelay = 3 * time.Second
)

// Cluster starts a cluster and returns when every node serves, knows every other node, and every
// replica is in sync. That takes a little over two seconds, as Redis lets no master serve sooner
// after it was started; about one with Options.MovableClock. It ends the test on failure.
func Cluster(tb TB, opts Options) *ClusterSet {
	tb.Helper()
	bed := newBed(tb, opts)
	c := &ClusterSet{ids: map[*Server]string{}}
	count := 2 * masterCount
	if opts.NoReplicas {
		count = masterCount
	}
	for range count {
		n := bed.dataServer("--cluster-enabled", "yes", "--cluster-node-timeout", millis(formTimeout))
		n.bus = true
		c.nodes = append(c.nodes, n)
	}
	if bed.clock != nil {
		bed.clock.Advance(-masterDelay) // form moves it back
	}
	if err := startAll(c.nodes); err != nil {
		tb.Fatalf("testredis: start the nodes of a cluster: %v", err)
	}
	if err := c.form(bed); err != nil {
		tb.Fatalf("testredis: form a cluster: %v", err)
	}
	return c
}

// Addrs returns the addresses of all nodes.
func (c *ClusterSet) Addrs() []string { return addrs(c.nodes) }

// Nodes returns all nodes, dead ones too, always in the same order.
func (c *ClusterSet) Nodes() []*Server { return slices.Clone(c.nodes) }

// Clock returns the clock that all nodes share. It is nil without Options.MovableClock.
func (c *ClusterSet) Clock() *Clock { return c.nodes[0].clock }

// form makes one cluster of the nodes and then gives it its node timeout.
func (c *ClusterSet) form(bed *bed) error {
	if err := c.assign(); err != nil {
		return err
	}
	if bed.clock != nil {
		// Now, because assign started the delay on every node, and there is no link yet
		// whose other end would seem to have been silent for that long.
		bed.clock.Advance(masterDelay)
	}
	for _, step := range []func() error{c.introduce, c.replicate, c.waitReady} {
		if err := step(); err != nil {
			return err
		}
	}
	timeout := millis(bed.opts.NodeTimeout)
	for _, n := range c.nodes {
		if _, err := n.Do("CONFIG", "SET", "cluster-node-timeout", timeout); err != nil {
			return err
		}
		n.args = append(n.args, "--cluster-node-timeout", timeout) // for a Restart
	}
	return nil
}

// assign notes each node's id and gives it its epoch, so that they need not settle who has which by collisions,
// and each master its slots.
func (c *ClusterSet) assign() error {
	for i, n := range c.nodes {
		if _, err := n.Do("CLUSTER", "SET-CONFIG-EPOCH", strconv.Itoa(i+1)); err != nil {
			return err
		}
		id, err := n.Do("CLUSTER", "MYID")
		if err != nil {
			return err
		}
		c.ids[n] = id.(string)
	}
	for i, n := range c.nodes[:masterCount] {
		first, next := i*slotCount/masterCount, (i+1)*slotCount/masterCount
		if _, err := n.Do("CLUSTER", "ADDSLOTSRANGE", strconv.Itoa(first), strconv.Itoa(next-1)); err != nil {
			return err
		}
	}
	return nil
}

// introduce makes every pair of nodes meet. One node meeting the rest would do, but the others
// then hear of each other by gossip, which takes a second more.
func (c *ClusterSet) introduce() error {
	for i, n := range c.nodes {
		for _, other := range c.nodes[i+1:] {
			if _, err := n.Do("CLUSTER", "MEET", "127.0.0.1", strconv.Itoa(other.port)); err != nil {
				return err
			}
		}
	}
	return poll(readyLimit, nil, func() error { return c.each(c.knowsAll) })
}

// replicate makes node 3 follow node 0 and so on.
func (c *ClusterSet) replicate() error {
	for i, n := range c.nodes[masterCount:] {
		if _, err := n.Do("CLUSTER", "REPLICATE", c.ids[c.nodes[i]]); err != nil {
			return err
		}
	}
	return nil
}

// waitReady waits until every node serves and would tell a client the whole truth.
func (c *ClusterSet) waitReady() error {
	return poll(readyLimit, nil, func() error { return c.each(c.knowsAll, c.serves, inSync) })
}

// each runs the checks on every node and returns the first complaint.
func (c *ClusterSet) each(checks ...func(*Server) error) error {
	for _, n := range c.nodes {
		for _, check := range checks {
			if err := check(n); err != nil {
				return fmt.Errorf("node %s: %w", n.Addr(), err)
			}
		}
	}
	return nil
}

// knowsAll checks that the node has links to all others. CLUSTER INFO counts nodes that it is
// still shaking hands with, and those cannot be replicated.
func (c *ClusterSet) knowsAll(n *Server) error {
	reply, err := n.Do("CLUSTER", "NODES")
	if err != nil {
		return err
	}
	text, _ := reply.(string)
	linked := strings.Count(text, " connected")
	if linked != len(c.nodes) || strings.Contains(text, "handshake") || strings.Contains(text, "fail") {
		return fmt.Errorf("does not know all of %d nodes:\n%s", len(c.nodes), text)
	}
	return nil
}

// serves checks that the node takes commands and sees the others in their final roles.
func (c *ClusterSet) serves(n *Server) error {
	info, err := n.Do("CLUSTER", "INFO")
	if err != nil {
		return err
	}
	state, known := infoField(info, "cluster_state"), infoField(info, "cluster_known_nodes")
	if state != "ok" || known != strconv.Itoa(len(c.nodes)) {
		return fmt.Errorf("state %s, %s nodes known", state, known)
	}
	nodes, err := n.Do("CLUSTER", "NODES")
	if err != nil {
		return err
	}
	text, _ := nodes.(string)
	if got, want := strings.Count(text, "slave "), len(c.nodes)-masterCount; got != want {
		return fmt.Errorf("sees %d of %d replicas:\n%s", got, want, text)
	}
	return nil
}

// inSync checks that a replica follows its master; a master passes.
func inSync(n *Server) error {
	info, err := n.Do("INFO", "replication")
	if err != nil {
		return err
	}
	if infoField(info, "role") == "slave" && infoField(info, "master_link_status") != "up" {
		return errors.New("not in sync with its master")
	}
	return nil
}

// addrs returns the addresses of the servers.
func addrs(servers []*Server) []string {
	list := make([]string, len(servers))
	for i, s := range servers {
		list[i] = s.Addr()
	}
	return list
}

// millis writes a duration as Redis's configuration wants it.
func millis(d time.Duration) string { return strconv.FormatInt(d.Milliseconds(), 10) }
