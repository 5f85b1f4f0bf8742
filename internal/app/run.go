package app

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/sluicehq/sluice/internal/config"
)

// errEnded tells that something ended that should run as long as the node.
var errEnded = errors.New("ended by itself")

// Run serves until ctx ends, and then drains: the node says that it is not ready, goes on answering for the grace period,
// finishes what is under way and lets go of everything. The first part that fails ends all.
func (a *App) Run(ctx context.Context) error {
	defer a.counters.close()
	defer a.closeControl()
	defer a.flush(ctx)
	defer a.health.SetDraining() // also where no door opened: gRPC's health waits for it
	servers, err := a.start(ctx)
	if err != nil || ctx.Err() != nil {
		return a.whileStarting(ctx, servers, err)
	}
	return a.serve(ctx, servers)
}

// start does what may fail before anything is answered.
func (a *App) start(ctx context.Context) ([]*server, error) {
	if err := a.firstRules(ctx); err != nil {
		return nil, err
	}
	if err := a.openDoors(ctx); err != nil {
		return nil, err
	}
	return a.listen(ctx)
}

// whileStarting ends a node that cannot start, or was told to stop before it had: that is no failure.
func (a *App) whileStarting(ctx context.Context, servers []*server, err error) error {
	for _, s := range servers {
		_ = s.listener.Close()
	}
	a.stop(servers) // gRPC's workers run already
	if ctx.Err() != nil {
		return nil //nolint:nilerr // err says that ctx ended, if anything
	}
	return err
}

// serve runs doors and parts until ctx ends or one of them fails.
func (a *App) serve(ctx context.Context, servers []*server) error {
	// Parts outlive ctx until the doors have drained.
	background, end := context.WithCancel(context.WithoutCancel(ctx))
	defer end()
	group, failed := errgroup.WithContext(background)
	a.front.Load().run(background)
	for name, run := range a.parts() {
		group.Go(func() error {
			if err := run(failed); err != nil && failed.Err() == nil {
				return fmt.Errorf("%s: %w", name, err)
			}
			if failed.Err() == nil {
				return fmt.Errorf("%s: %w", name, errEnded)
			}
			return nil
		})
	}
	var serving sync.WaitGroup
	for _, s := range servers {
		serving.Add(1)
		group.Go(func() error {
			defer serving.Done()
			if err := s.serve(s.listener); err != nil {
				return fmt.Errorf("%s listener: %w", s.name, err)
			}
			return nil
		})
	}
	a.announce(servers)

	select {
	case <-ctx.Done():
		a.drain(failed, servers)
	case <-failed.Done():
		a.stop(servers)
	}
	serving.Wait()
	end()
	err := group.Wait()
	a.front.Load().end()
	a.log.Info("stopped")
	return err
}

// flushTimeout bounds what is sent at the very end.
const flushTimeout = time.Second

// flush delivers the last traces.
func (a *App) flush(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), flushTimeout)
	defer cancel()
	if err := a.traces.Shutdown(ctx); err != nil {
		a.log.Warn("traces were lost at the end", "error", err)
	}
}

// parts run as long as the node.
func (a *App) parts() map[string]func(context.Context) error {
	parts := map[string]func(context.Context) error{
		"rule feed": a.runFeed,
		"nodes":     a.counters.run,
		"outages":   a.outages.Run,
		"reload":    a.watchConfig,
	}
	if a.control != nil {
		parts["control plane"], parts["directory"] = a.control.Run, a.live.Run
	}
	return parts
}

// announce tells where the node answers.
func (a *App) announce(servers []*server) {
	addresses := map[string]string{}
	for _, s := range servers {
		addresses[s.name] = s.listener.Addr().String()
		a.log.Info("listening", "door", s.name, "address", addresses[s.name])
	}
	cfg := &a.config.Load().Config
	a.log.Info("serving", "node", cfg.Node, "version", a.opts.Version, "rules", a.limiter.Rules().Len(), "revision", int64(a.limiter.Rules().Revision()))
	if a.opts.Ready != nil {
		a.opts.Ready(addresses)
	}
}

// drain lets balancers look away before anything is refused.
func (a *App) drain(failed context.Context, servers []*server) {
	a.log.Info("stopping: not ready from now on", "grace", a.config.Load().Config.Shutdown.Grace)
	a.health.SetDraining()
	for _, s := range servers {
		s.leave()
	}
	pause(failed, a.config.Load().Config.Shutdown.Grace.Std())
	a.stop(servers)
}

// stop ends the doors, all at once.
func (a *App) stop(servers []*server) {
	a.health.SetDraining()
	ctx, cancel := context.WithTimeout(context.Background(), a.config.Load().Config.Shutdown.Drain.Std())
	defer cancel()
	var wait sync.WaitGroup
	for _, s := range servers {
		wait.Go(func() { s.stop(ctx) })
	}
	wait.Wait()
}

// listen opens all listeners, or none.
func (a *App) listen(ctx context.Context) ([]*server, error) {
	sockets, err := inheritedSockets(os.Getenv, os.Getpid())
	if err != nil {
		return nil, err
	}
	cfg := &a.config.Load().Config
	var opened []net.Listener
	var servers []*server
	for _, d := range []struct {
		name, address string
		open          func(*config.Config, net.Listener) (*server, error)
	}{
		{"http", cfg.HTTP.Listen, a.httpDoor},
		{"grpc", cfg.GRPC.Listen, a.grpcDoor},
		{"admin", cfg.Admin.Listen, a.adminDoor},
		{"gateway", cfg.Gateway.Listen, a.gatewayDoor},
	} {
		if d.address == "" {
			continue
		}
		l, err := sockets.listen(ctx, d.name, d.address)
		if err != nil && a.opts.AnyPort {
			l, err = sockets.listen(ctx, d.name, "127.0.0.1:0")
		}
		if err == nil {
			opened = append(opened, l)
			var s *server
			if s, err = d.open(cfg, l); err == nil {
				servers = append(servers, s)
			}
		}
		if err != nil {
			for _, l := range opened {
				_ = l.Close()
			}
			a.stop(servers) // gRPC's workers run already
			return nil, err
		}
	}
	return servers, nil
}

// whole answers by whichever front is in force.
func (a *App) whole(pick func(*front) http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { pick(a.front.Load()).ServeHTTP(w, r) })
}
