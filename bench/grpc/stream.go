package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/encoding/protowire"
)

// shared is a stream that several callers use, as grpclimit.Client does: a call costs a message, and replies that are ready
// together come together.
type shared struct {
	stream  grpc.ClientStream
	sending sync.Mutex
	replies []chan []byte // by id
	failure atomic.Pointer[error]
	ended   chan struct{}
}

var streamDesc = &grpc.StreamDesc{ClientStreams: true, ServerStreams: true}

// openShared opens a stream for callers with ids below n.
func openShared(ctx context.Context, conn *grpc.ClientConn, method string, n int) (*shared, error) {
	stream, err := conn.NewStream(ctx, streamDesc, method)
	if err != nil {
		return nil, err
	}
	s := &shared{stream: stream, replies: make([]chan []byte, n), ended: make(chan struct{})}
	for i := range s.replies {
		s.replies[i] = make(chan []byte, 1)
	}
	go s.receive()
	return s, nil
}

// receive hands every reply to the caller who waits for it.
func (s *shared) receive() {
	defer close(s.ended)
	for {
		var message []byte // the callers keep parts of it
		if err := s.stream.RecvMsg(&message); err != nil {
			if !errors.Is(err, io.EOF) {
				s.failure.Store(&err)
			}
			return
		}
		for len(message) > 0 {
			_, _, n := protowire.ConsumeTag(message)
			reply, m := protowire.ConsumeBytes(message[max(n, 0):])
			if n < 0 || m < 0 {
				err := errors.New("a reply of the stream cannot be read")
				s.failure.Store(&err)
				return
			}
			id, err := idOf(reply)
			if err != nil || id >= uint64(len(s.replies)) {
				err = fmt.Errorf("a reply has id %d: %w", id, err)
				s.failure.Store(&err)
				return
			}
			s.replies[id] <- message[:n+m]
			message = message[n+m:]
		}
	}
}

// idOf reads the first field of a reply; an absent one is 0.
func idOf(reply []byte) (uint64, error) {
	num, typ, n := protowire.ConsumeTag(reply)
	if n < 0 {
		return 0, protowire.ParseError(n)
	}
	if num != 1 || typ != protowire.VarintType {
		return 0, nil
	}
	id, m := protowire.ConsumeVarint(reply[n:])
	return id, protowire.ParseError(min(m, 0))
}

// ask sends a message that has no id yet, and waits for its reply. gRPC may hold on to what is sent, so it is not reused.
func (s *shared) ask(id int, message []byte) ([]byte, error) {
	buf := make([]byte, 0, len(message)+8)
	buf = protowire.AppendVarint(protowire.AppendTag(buf, 1, protowire.VarintType), uint64(id))
	buf = append(buf, message...)
	s.sending.Lock()
	err := s.stream.SendMsg(&buf)
	s.sending.Unlock()
	if err != nil {
		return nil, err
	}
	select {
	case reply := <-s.replies[id]:
		return reply, nil
	case <-s.ended:
		if err := s.failure.Load(); err != nil {
			return nil, *err
		}
		return nil, io.ErrUnexpectedEOF
	}
}

func (s *shared) close() error {
	if err := s.stream.CloseSend(); err != nil {
		return err
	}
	<-s.ended
	if err := s.failure.Load(); err != nil {
		return *err
	}
	return nil
}
