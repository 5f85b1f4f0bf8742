package main

import (
	"errors"
	"fmt"

	common "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	pb "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/protobuf/proto"

	"github.com/sluicehq/sluice/api/sluicev1"
)

// The forms. "pool" is the reference without a pipeline window.
const (
	unaryOurs          = "rls"
	unaryReference     = "reference"
	unaryReferencePool = "reference, pool"
	unaryEmpty         = "empty handler"
	streamOurs         = "stream"
	tenOurs            = "batch of 10"
	tenRLS             = "rls, 10 descriptors"
	tenReference       = "reference, 10 descriptors"
	tenReferencePool   = "reference, pool, 10"
	tenStreamOurs      = "stream, 10 a message"
)

const (
	users = 100_000
	ten   = 10
)

func (s *servers) makeForms() ([]*form, error) {
	rls1, rls10 := rlsMessages(1), rlsMessages(ten)
	var all []*form
	add := func(name, addr string, pid int, method string, messages [][]byte, each int, check func([]byte) error) error {
		conns, err := connect(addr)
		if err != nil {
			return err
		}
		all = append(all, &form{
			name: name, pid: pid, redis: s.redisPID, conns: conns, method: method, messages: messages, each: each, check: check,
			stream: method == sluicev1.LimiterService_CheckStream_FullMethodName,
		})
		return nil
	}
	rls, node, pid := pb.RateLimitService_ShouldRateLimit_FullMethodName, s.node.GRPC, s.node.PID()
	err := errors.Join(
		add(unaryOurs, node, pid, rls, rls1, 1, checkRLS(1, true)),
		add(unaryReference, s.window.GRPC, s.window.PID, rls, rls1, 1, checkRLS(1, true)),
		add(unaryReferencePool, s.pool.GRPC, s.pool.PID, rls, rls1, 1, checkRLS(1, true)),
		add(unaryEmpty, s.emptyAddr, s.emptyPID, rls, rls1, 1, checkRLS(1, false)),
		add(streamOurs, node, pid, sluicev1.LimiterService_CheckStream_FullMethodName, streamMessages(1), 1, checkStream(1)),
		add(tenOurs, node, pid, sluicev1.LimiterService_CheckBatch_FullMethodName, batchMessages(), ten, checkBatch),
		add(tenRLS, node, pid, rls, rls10, ten, checkRLS(ten, true)),
		add(tenReference, s.window.GRPC, s.window.PID, rls, rls10, ten, checkRLS(ten, true)),
		add(tenReferencePool, s.pool.GRPC, s.pool.PID, rls, rls10, ten, checkRLS(ten, true)),
		add(tenStreamOurs, node, pid, sluicev1.LimiterService_CheckStream_FullMethodName, streamMessages(ten), ten, checkStream(ten)),
	)
	return all, err
}

func user(n int) string { return fmt.Sprintf("user-%d", n%users) }

// encode makes as many messages as cover all users.
func encode(each int, message func(first int) proto.Message) [][]byte {
	texts := make([][]byte, users/each)
	for i := range texts {
		text, err := proto.Marshal(message(i * each))
		if err != nil {
			panic(err) // our own messages always marshal
		}
		texts[i] = text
	}
	return texts
}

func rlsMessages(each int) [][]byte {
	return encode(each, func(first int) proto.Message {
		req := &pb.RateLimitRequest{Domain: "bench"}
		for i := range each {
			req.Descriptors = append(req.Descriptors, &common.RateLimitDescriptor{
				Entries: []*common.RateLimitDescriptor_Entry{{Key: "user", Value: user(first + i)}},
			})
		}
		return req
	})
}

func requests(first, n int) (all []*sluicev1.Request) {
	for i := range n {
		all = append(all, &sluicev1.Request{Namespace: "bench", Subject: &sluicev1.Subject{User: user(first + i)}})
	}
	return all
}

func streamMessages(each int) [][]byte {
	return encode(each, func(first int) proto.Message {
		return &sluicev1.CheckStreamRequest{Requests: requests(first, each)} // the id is put before it
	})
}

func batchMessages() [][]byte {
	return encode(ten, func(first int) proto.Message { return &sluicev1.CheckBatchRequest{Requests: requests(first, ten)} })
}

var errNoDecision = errors.New("the reply holds no decision by a limit")

func checkRLS(statuses int, limited bool) func([]byte) error {
	return func(reply []byte) error {
		var resp pb.RateLimitResponse
		if err := proto.Unmarshal(reply, &resp); err != nil {
			return err
		}
		if len(resp.GetStatuses()) != statuses || limited && resp.GetStatuses()[0].GetCurrentLimit().GetRequestsPerUnit() != 1_000_000 {
			return errNoDecision
		}
		return nil
	}
}

func checkAnswers(answers []*sluicev1.Answer, want int) error {
	if len(answers) != want || !answers[0].GetDecision().GetAllowed() || len(answers[0].GetDecision().GetResults()) != 1 {
		return errNoDecision
	}
	return nil
}

func checkBatch(reply []byte) error {
	var resp sluicev1.CheckBatchResponse
	if err := proto.Unmarshal(reply, &resp); err != nil {
		return err
	}
	return checkAnswers(resp.GetAnswers(), ten)
}

func checkStream(each int) func([]byte) error {
	return func(reply []byte) error {
		var resp sluicev1.CheckStreamResponse
		if err := proto.Unmarshal(reply, &resp); err != nil {
			return err
		}
		if len(resp.GetReplies()) != 1 {
			return errNoDecision
		}
		return checkAnswers(resp.GetReplies()[0].GetAnswers(), each)
	}
}
