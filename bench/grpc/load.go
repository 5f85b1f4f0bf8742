package main

import (
	"context"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/mem"

	"github.com/sluicehq/sluice/bench/internal/load"
)

// form is one way to ask one server.
type form struct {
	name     string
	pid      int
	redis    int // its pid
	conns    []*grpc.ClientConn
	method   string
	stream   bool
	messages [][]byte // encoded ahead, so that all forms cost the generator the same
	each     int      // decisions per message
	check    func(reply []byte) error
}

// connections is how many each form has, as Envoy has one for each of its workers.
const connections = 4

func connect(addr string) ([]*grpc.ClientConn, error) {
	var conns []*grpc.ClientConn
	for range connections {
		c, err := grpc.NewClient(addr, grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithDefaultCallOptions(grpc.ForceCodecV2(rawCodec{})))
		if err != nil {
			return nil, err
		}
		conns = append(conns, c)
	}
	return conns, nil
}

// rawCodec passes bytes through.
type rawCodec struct{}

func (rawCodec) Name() string { return "proto" }

func (rawCodec) Marshal(v any) (mem.BufferSlice, error) {
	return mem.BufferSlice{mem.SliceBuffer(*v.(*[]byte))}, nil
}

func (rawCodec) Unmarshal(data mem.BufferSlice, v any) error {
	reply := v.(*[]byte)
	*reply = (*reply)[:0]
	for _, b := range data {
		*reply = append(*reply, b.ReadOnlyData()...)
	}
	return nil
}

// measured is one run.
type measured struct {
	decisions int64
	elapsed   time.Duration
	cpu       time.Duration // of the server
	redis     time.Duration // of Redis
	own       time.Duration // of this process
}

// load keeps callers asking for a while, each as soon as its answer came.
func (f *form) load(ctx context.Context, callers int) (measured, error) {
	ctx, cancel := context.WithTimeout(ctx, warm+span+10*time.Second)
	defer cancel()
	var asked atomic.Int64
	var stop atomic.Bool
	var failure atomic.Pointer[error]
	var wait sync.WaitGroup
	var streams []*shared
	for _, conn := range f.conns {
		if f.stream {
			s, err := openShared(ctx, conn, f.method, callers)
			if err != nil {
				return measured{}, err
			}
			streams = append(streams, s)
		}
	}
	for caller := range callers {
		wait.Go(func() {
			var err error
			if f.stream {
				err = f.streaming(streams[caller%len(streams)], caller, callers, &asked, &stop)
			} else {
				err = f.unary(ctx, caller, callers, &asked, &stop)
			}
			if err != nil {
				failure.CompareAndSwap(nil, &err)
				stop.Store(true)
			}
		})
	}
	time.Sleep(warm)
	began, before := time.Now(), asked.Load()
	cpu, redis, own := load.ProcessCPU(f.pid), load.ProcessCPU(f.redis), load.ProcessCPU(os.Getpid())
	time.Sleep(span)
	m := measured{
		decisions: (asked.Load() - before) * int64(f.each), elapsed: time.Since(began),
		cpu: load.ProcessCPU(f.pid) - cpu, redis: load.ProcessCPU(f.redis) - redis, own: load.ProcessCPU(os.Getpid()) - own,
	}
	stop.Store(true)
	wait.Wait()
	for _, s := range streams {
		if err := s.close(); err != nil {
			return m, fmt.Errorf("end the stream: %w", err)
		}
	}
	if err := failure.Load(); err != nil {
		return m, *err
	}
	return m, nil
}

// checkEvery is how often a reply is decoded: seldom enough to cost nothing.
const checkEvery = 256

func (f *form) unary(ctx context.Context, caller, callers int, asked *atomic.Int64, stop *atomic.Bool) error {
	conn := f.conns[caller%len(f.conns)]
	var reply []byte
	for n := caller; !stop.Load(); n += callers {
		if err := conn.Invoke(ctx, f.method, &f.messages[n%len(f.messages)], &reply); err != nil {
			return err
		}
		asked.Add(1)
		if n/callers%checkEvery == 0 {
			if err := f.check(reply); err != nil {
				return err
			}
		}
	}
	return nil
}

// streaming asks by the stream of the caller's connection.
func (f *form) streaming(s *shared, caller, callers int, asked *atomic.Int64, stop *atomic.Bool) error {
	for n := caller; !stop.Load(); n += callers {
		reply, err := s.ask(caller, f.messages[n%len(f.messages)])
		if err != nil {
			return err
		}
		asked.Add(1)
		if n/callers%checkEvery == 0 {
			if err := f.check(reply); err != nil {
				return err
			}
		}
	}
	return nil
}
