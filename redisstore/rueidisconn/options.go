package rueidisconn

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/redis/rueidis"
)

// Options say where Redis is and how to reach it. Addrs is required.
type Options struct {
	// Addrs are host:port of the server, of the sentinels, or of some nodes of the cluster.
	Addrs []string
	// Cluster tells that Addrs are nodes of a Redis Cluster. Default false.
	Cluster bool
	// SentinelMaster is the master's name; set, it tells that Addrs are sentinels. Default: none.
	SentinelMaster string
	// Username and Password are the ACL credentials. Default: none.
	Username, Password string
	// SentinelUsername and SentinelPassword are those of the sentinels. Default: none.
	SentinelUsername, SentinelPassword string
	// DB is the database of a single server or behind Sentinel. Default 0.
	DB int
	// TLS encrypts the connections, also to sentinels. Default: none.
	TLS *tls.Config
	// Dial opens connections in place of TLS, for certificates that are replaced while the program runs. Default: none.
	Dial func(ctx context.Context, dialer *net.Dialer, addr string) (net.Conn, error)
	// Timeout bounds calls whose context has no deadline. A Limiter sets its own, shorter one. Default 1 s.
	Timeout time.Duration
	// DialTimeout bounds a new connection. Default 1 s.
	DialTimeout time.Duration
	// OnBreaker is told when a shard's breaker opens and closes. It must not block. Default: nobody.
	OnBreaker func(shard string, open bool)
}

func (o Options) withDefaults() (Options, error) {
	var faults []error
	if len(o.Addrs) == 0 {
		faults = append(faults, errors.New("no Redis address: set Addrs, such as 127.0.0.1:6379"))
	}
	if o.Cluster && (o.SentinelMaster != "" || o.DB != 0) {
		faults = append(faults, errors.New("a Redis Cluster has neither sentinels nor databases: unset SentinelMaster and DB, or Cluster"))
	}
	if len(o.Addrs) > 1 && !o.Cluster && o.SentinelMaster == "" {
		faults = append(faults, errors.New("several addresses, but neither Cluster nor SentinelMaster: a single server has one"))
	}
	if o.DB < 0 {
		faults = append(faults, fmt.Errorf("DB is %d: want 0 or more", o.DB))
	}
	if err := errors.Join(faults...); err != nil {
		return o, err
	}
	if o.Timeout <= 0 {
		o.Timeout = time.Second
	}
	if o.DialTimeout <= 0 {
		o.DialTimeout = time.Second
	}
	return o, nil
}

// ClientOption returns what New would hand to rueidis, for tools that ask the same Redis something else.
func (o Options) ClientOption() (rueidis.ClientOption, error) {
	o, err := o.withDefaults()
	if err != nil {
		return rueidis.ClientOption{}, err
	}
	return o.client(), nil
}

// client translates into what rueidis wants. Retries are off: a consume whose reply was lost must not be sent again.
func (o Options) client() rueidis.ClientOption {
	opt := rueidis.ClientOption{
		InitAddress:       o.Addrs,
		Username:          o.Username,
		Password:          o.Password,
		SelectDB:          o.DB,
		TLSConfig:         o.TLS,
		ClientName:        "sluice",
		DisableRetry:      true,
		DisableCache:      true,
		ForceSingleClient: !o.Cluster && o.SentinelMaster == "",
		Dialer:            net.Dialer{Timeout: o.DialTimeout, KeepAlive: time.Second},
		ConnWriteTimeout:  2 * time.Second, // also how long a dead connection goes unnoticed
		// Two nodes that send us to each other would else be asked over and over until the deadline.
		ClusterOption: rueidis.ClusterOption{MaxMovedRedirections: 5},
	}
	if o.Dial != nil {
		opt.DialCtxFn = func(ctx context.Context, addr string, dialer *net.Dialer, _ *tls.Config) (net.Conn, error) {
			return o.Dial(ctx, dialer, addr)
		}
	}
	if o.SentinelMaster != "" {
		opt.Sentinel = rueidis.SentinelOption{
			MasterSet: o.SentinelMaster,
			Username:  o.SentinelUsername,
			Password:  o.SentinelPassword,
			TLSConfig: o.TLS,
			Dialer:    opt.Dialer,
			// They tell of a new master by themselves; who did not hear it finds out so.
			TopologyRefreshInterval: 5 * time.Second,
		}
	}
	return opt
}
