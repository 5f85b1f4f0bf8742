package testredis

import (
	"strconv"
	"strings"
)

// claim is what a cluster node says of itself.
type claim struct {
	node     *Server
	masterID string // "-" for a master
	epoch    int64
	slots    []string // as in CLUSTER NODES: "5" or "0-5460", and "[...]" while a slot moves
}

// Masters returns the running nodes that serve slots now. A master that was killed is not among
// them, nor is its replica before it has been promoted.
func (c *ClusterSet) Masters() []*Server {
	var list []*Server
	claims := c.claims()
	for _, cl := range claims {
		// A master back from a pause claims its slots until it hears that it lost them.
		if first, ok := cl.firstSlot(); ok && owner(claims, first) == cl.node {
			list = append(list, cl.node)
		}
	}
	return list
}

// Replicas returns the running nodes that are replicas now.
func (c *ClusterSet) Replicas() []*Server {
	var list []*Server
	for _, cl := range c.claims() {
		if cl.masterID != "-" {
			list = append(list, cl.node)
		}
	}
	return list
}

// ReplicaOf returns a running replica that follows the node, which may be dead itself as long as
// nobody has taken its place. It is nil when there is none.
func (c *ClusterSet) ReplicaOf(master *Server) *Server {
	for _, cl := range c.claims() {
		if cl.masterID == c.ids[master] {
			return cl.node
		}
	}
	return nil
}

// NodeBySlot returns the running node that serves the slot now: of those that claim it, the one
// with the newest epoch. It is nil while nobody does, as between a master's death and the
// promotion of its replica, so a test may poll for the new one.
func (c *ClusterSet) NodeBySlot(slot int) *Server { return owner(c.claims(), slot) }

// owner returns who of the claims serves the slot.
func owner(claims []claim, slot int) *Server {
	var best claim
	for _, cl := range claims {
		if cl.holds(slot) && (best.node == nil || cl.epoch > best.epoch) {
			best = cl
		}
	}
	return best.node
}

// claims asks every node that runs, and is not paused, about itself. What nodes say of each other
// is not asked: it lags behind.
func (c *ClusterSet) claims() []claim {
	var list []claim
	for _, n := range c.nodes {
		if !n.responsive() {
			continue
		}
		reply, err := n.Do("CLUSTER", "NODES")
		if err != nil {
			continue // killed this moment: it claims nothing
		}
		if cl, ok := parseClaim(reply); ok {
			cl.node = n
			list = append(list, cl)
		}
	}
	return list
}

// parseClaim finds the line of CLUSTER NODES about the node itself:
//
//	id address flags master-id ping pong epoch link-state slot ...
func parseClaim(reply any) (claim, bool) {
	text, _ := reply.(string)
	for line := range strings.Lines(text) {
		f := strings.Fields(line)
		if len(f) < 8 || !strings.HasPrefix(f[2], "myself") {
			continue
		}
		epoch, err := strconv.ParseInt(f[6], 10, 64)
		if err != nil {
			return claim{}, false
		}
		return claim{masterID: f[3], epoch: epoch, slots: f[8:]}, true
	}
	return claim{}, false
}

// holds reports whether the claim covers the slot.
func (cl claim) holds(slot int) bool {
	for _, r := range cl.slots {
		if first, last, ok := slotRange(r); ok && first <= slot && slot <= last {
			return true
		}
	}
	return false
}

// firstSlot returns the lowest slot of the claim, if there is one.
func (cl claim) firstSlot() (int, bool) {
	for _, r := range cl.slots {
		if first, _, ok := slotRange(r); ok {
			return first, true
		}
	}
	return 0, false
}

// slotRange parses "5" and "0-5460"; "[5->-id]", a slot on the move, is none.
func slotRange(s string) (first, last int, ok bool) {
	from, to, found := strings.Cut(s, "-")
	if !found {
		to = from
	}
	first, err := strconv.Atoi(from)
	if err != nil {
		return 0, 0, false
	}
	last, err = strconv.Atoi(to)
	return first, last, err == nil
}
