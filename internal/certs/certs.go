// Package certs gives TLS configurations whose certificates can be replaced while they are in use.
package certs

import (
	"bytes"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"sync/atomic"
	"time"
)

// Options tune the reloading. The zero value works.
type Options struct {
	// OnReload is told each time other files were found: nil when they are in use from now on, else why the last good
	// ones stay. It is called during a handshake and must not block. Default: nobody.
	OnReload func(error)
	// NextProtos are the protocols a server offers, best first. Default "h2", "http/1.1".
	NextProtos []string
	// Every is how often the files are looked at, at most, and only while there are handshakes. Default 1s.
	Every time.Duration

	now func() time.Time
}

func (o Options) withDefaults() Options {
	if o.OnReload == nil {
		o.OnReload = func(error) {}
	}
	if o.NextProtos == nil {
		o.NextProtos = []string{"h2", "http/1.1"}
	}
	if o.Every <= 0 {
		o.Every = time.Second
	}
	if o.now == nil {
		o.now = time.Now
	}
	return o
}

// files are those of one listener or connection; empty names are not used.
type files struct {
	cert, key, ca string
}

// material is what was read from the files. It is never modified.
type material struct {
	digest [sha256.Size]byte
	pair   *tls.Certificate // nil: no certificate of our own
	pool   *x509.CertPool   // nil: the system's authorities, or nobody's
	server *tls.Config      // of servers that ask for client certificates
}

// source keeps the material of files current. There is no goroutine: handshakes look at the files, so that nothing has
// to be stopped, and a listener that nobody calls costs nothing.
type source struct {
	files files
	opts  Options
	good  atomic.Pointer[material]
	next  atomic.Int64 // Unix nanoseconds of the next look
	busy  atomic.Bool
	// complained is the last failure told; only the holder of busy touches it.
	complained string
	// finish completes new material. May be nil.
	finish func(*material)
}

// open reads the files for the first time: now a fault is an error.
func (s *source) open() error {
	m, err := s.read()
	if err == nil {
		err = s.parse(m)
	}
	if err != nil {
		return err
	}
	s.good.Store(m.material)
	s.next.Store(s.opts.now().Add(s.opts.Every).UnixNano())
	return nil
}

// current returns the material to use now. One handshake at a time looks at the files, while others go on with what there is.
func (s *source) current() *material {
	now := s.opts.now()
	if now.UnixNano() >= s.next.Load() && s.busy.CompareAndSwap(false, true) {
		s.refresh()
		s.next.Store(now.Add(s.opts.Every).UnixNano())
		s.busy.Store(false)
	}
	return s.good.Load()
}

// force looks at the files now, unless somebody is just doing so.
func (s *source) force() {
	s.next.Store(0)
	s.current()
}

// refresh takes over new files when they are whole. Files are replaced one after the other, so a certificate and a key
// that do not belong together are usually half of a change: the rest is waited for.
func (s *source) refresh() {
	m, err := s.read()
	if err == nil {
		if m.digest == s.good.Load().digest {
			s.complained = ""
			return
		}
		err = s.parse(m)
	}
	if err == nil {
		s.complained = ""
		s.good.Store(m.material)
		s.opts.OnReload(nil)
		return
	}
	// The same broken files are tried again each time, because a certificate may only not be valid yet, and told of once.
	if complaint := fmt.Sprintf("%x %s", m.digest, err); complaint != s.complained {
		s.complained = complaint
		s.opts.OnReload(fmt.Errorf("certificates stay as they were: %w", err))
	}
}

// contents are files as they were read.
type contents struct {
	*material
	cert, key, ca []byte
}

func (s *source) read() (contents, error) {
	c := contents{material: &material{}}
	var faults []error
	h := sha256.New()
	for _, f := range []struct {
		path string
		into *[]byte
	}{{s.files.cert, &c.cert}, {s.files.key, &c.key}, {s.files.ca, &c.ca}} {
		if f.path == "" {
			continue
		}
		data, err := os.ReadFile(f.path)
		if err != nil {
			faults = append(faults, err)
		}
		*f.into = data
		sum := sha256.Sum256(data)
		h.Write(sum[:])
	}
	h.Sum(c.digest[:0])
	return c, errors.Join(faults...)
}

// parse makes material of contents, or tells everything that is wrong with them.
func (s *source) parse(c contents) error {
	var faults []error
	if s.files.cert != "" {
		pair, err := tls.X509KeyPair(c.cert, c.key)
		switch {
		case err != nil:
			faults = append(faults, fmt.Errorf("certificate %s with key %s: %w", s.files.cert, s.files.key, err))
		default:
			faults = append(faults, s.checkTime(pair.Leaf))
			c.pair = &pair
		}
	}
	if s.files.ca != "" {
		c.pool = x509.NewCertPool()
		if !c.pool.AppendCertsFromPEM(bytes.TrimSpace(c.ca)) {
			faults = append(faults, fmt.Errorf("authorities %s: no certificate found: want PEM, -----BEGIN CERTIFICATE-----", s.files.ca))
		}
	}
	if err := errors.Join(faults...); err != nil {
		return err
	}
	if s.finish != nil {
		s.finish(c.material)
	}
	return nil
}

// checkTime refuses what every caller would refuse.
func (s *source) checkTime(leaf *x509.Certificate) error {
	switch now := s.opts.now(); {
	case now.After(leaf.NotAfter):
		return fmt.Errorf("certificate %s expired at %s: renew it", s.files.cert, leaf.NotAfter.Format(time.RFC3339))
	case now.Before(leaf.NotBefore):
		return fmt.Errorf("certificate %s is not valid before %s: check the clock, or wait", s.files.cert, leaf.NotBefore.Format(time.RFC3339))
	}
	return nil
}

// notAfter is when the certificate in use expires; zero without one.
func (s *source) notAfter() time.Time {
	if m := s.good.Load(); m.pair != nil {
		return m.pair.Leaf.NotAfter
	}
	return time.Time{}
}
