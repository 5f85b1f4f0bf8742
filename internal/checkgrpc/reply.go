package checkgrpc

import (
	"time"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/runtime/protoiface"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/api/sluicev1"
	"github.com/sluicehq/sluice/internal/engine"
)

// reply is any response message of the service, already written. It is a protobuf message by its methods table.
type reply struct {
	protoreflect.Message // what others see when they look into it: an empty message

	body []byte
}

func newReply(body []byte) *reply {
	return &reply{Message: (*sluicev1.CheckResponse)(nil).ProtoReflect(), body: body}
}

// decisionReply is a CheckResponse or a PeekResponse.
func decisionReply(d *sluice.Decision) *reply {
	const usual = 256 // bytes: two limits, with room
	return newReply(appendDecisionField(make([]byte, 0, usual), d))
}

// ProtoReflect makes it a protobuf message.
func (r *reply) ProtoReflect() protoreflect.Message { return r }

// Interface returns r itself.
func (r *reply) Interface() protoreflect.ProtoMessage { return r }

// IsValid tells that it is a message, if an empty one.
func (r *reply) IsValid() bool { return true }

// ProtoMethods tells how it is written to the wire.
func (r *reply) ProtoMethods() *protoiface.Methods { return &replyMethods }

// A table of functions, never written.
var replyMethods = protoiface.Methods{
	Flags: protoiface.SupportMarshalDeterministic,
	Size: func(in protoiface.SizeInput) protoiface.SizeOutput {
		return protoiface.SizeOutput{Size: len(in.Message.(*reply).body)}
	},
	Marshal: func(in protoiface.MarshalInput) (protoiface.MarshalOutput, error) {
		return protoiface.MarshalOutput{Buf: append(in.Buf, in.Message.(*reply).body...)}, nil
	},
	CheckInitialized: func(protoiface.CheckInitializedInput) (protoiface.CheckInitializedOutput, error) {
		return protoiface.CheckInitializedOutput{}, nil
	},
}

// Numbers of fields in api/proto that have no obvious place below.
const (
	fieldQuestions    = 1 // of all request messages but the next
	fieldStreamID     = 1 // of CheckStreamRequest
	fieldStreamAsked  = 2 // of CheckStreamRequest
	fieldDecision     = 1 // of CheckResponse, PeekResponse, ExplainResponse and Answer
	fieldReason       = 2 // of ExplainResponse
	fieldExplained    = 3 // of ExplainResponse
	fieldFaults       = 2 // of Answer
	fieldBatchAnswers = 1 // of CheckBatchResponse
	fieldReplies      = 1 // of CheckStreamResponse
	fieldReplyAnswers = 2 // of CheckStreamReply
)

func appendDecisionField(dst []byte, d *sluice.Decision) []byte {
	dst = protowire.AppendTag(dst, fieldDecision, protowire.BytesType)
	dst, at := begin(dst)
	return end(appendDecision(dst, d), at)
}

// appendDecision appends a Decision.
func appendDecision(dst []byte, d *sluice.Decision) []byte {
	const idLength = 32
	dst = append(dst, 1<<3|byte(protowire.BytesType), idLength)
	dst, _ = d.ID.AppendText(dst) // never fails
	dst = appendBool(dst, 2, d.Allowed)
	dst = appendInt(dst, 3, int64(d.Cause)+1)
	dst = appendInt(dst, 4, int64(d.Mode)+1)
	dst = appendInt(dst, 5, d.Cost)
	if d.Delay > 0 {
		dst = appendDuration(dst, 6, d.Delay)
	}
	if !d.Allowed && d.RetryAfter != sluice.Never {
		dst = appendDuration(dst, 7, d.RetryAfter)
	}
	dst = appendInt(dst, 8, int64(d.Revision))
	results := d.Results()
	for i := range results {
		dst = protowire.AppendTag(dst, 9, protowire.BytesType)
		var at int
		dst, at = begin(dst)
		dst = end(appendResult(dst, &results[i]), at)
	}
	return appendText(dst, 10, d.BlockReason())
}

// appendResult appends a Result.
func appendResult(dst []byte, r *sluice.Result) []byte {
	dst = appendText(dst, 1, r.Rule.Name)
	dst = appendText(dst, 2, r.Rule.Label)
	dst = appendInt(dst, 3, int64(r.Rule.Action)+1)
	if r.Limit.Limit > 0 { // a rule that blocks has none
		dst = appendInt(dst, 4, int64(r.Limit.Algorithm)+1)
		dst = appendInt(dst, 5, r.Limit.Limit)
		dst = appendDuration(dst, 6, r.Limit.Window)
		dst = appendInt(dst, 7, r.Limit.Burst)
	}
	dst = appendBool(dst, 8, r.Allowed)
	dst = appendInt(dst, 9, int64(r.Mode)+1)
	dst = appendInt(dst, 10, r.Remaining)
	if r.ResetAfter > 0 {
		dst = appendDuration(dst, 11, r.ResetAfter)
	}
	if !r.Allowed {
		if r.RetryAfter != sluice.Never {
			dst = appendDuration(dst, 12, r.RetryAfter)
		}
		dst = appendInt(dst, 13, int64(r.Rule.Response.Status))
		dst = appendText(dst, 14, r.Rule.Response.Message)
	}
	return dst
}

// appendExplained appends a RuleExplanation as a field of ExplainResponse.
func appendExplained(dst []byte, x *sluice.ExplainedRule) []byte {
	dst = protowire.AppendTag(dst, fieldExplained, protowire.BytesType)
	dst, at := begin(dst)
	dst = appendText(dst, 1, x.Rule.Name)
	dst = appendText(dst, 2, x.Rule.Layer)
	dst = appendBool(dst, 3, x.Matches)
	dst = appendBool(dst, 4, x.Applies)
	return end(appendText(dst, 5, x.Why), at)
}

// appendFaults appends the faults of an Answer.
func appendFaults(dst []byte, err error) []byte {
	for _, f := range engine.FaultsOf(err) {
		dst = protowire.AppendTag(dst, fieldFaults, protowire.BytesType)
		var at int
		dst, at = begin(dst)
		dst = appendText(dst, 1, f.Field())
		dst = end(appendText(dst, 2, f.Problem), at)
	}
	return dst
}

// begin leaves a byte for the length of what is appended next; end fills it in. Most messages are short enough for it;
// others are moved, which is cheaper than measuring all of them first.
func begin(dst []byte) (after []byte, at int) { return append(dst, 0), len(dst) }

func end(dst []byte, at int) []byte {
	n := len(dst) - at - 1
	if more := protowire.SizeVarint(uint64(n)) - 1; more > 0 {
		dst = append(dst, make([]byte, more)...)
		copy(dst[at+1+more:], dst[at+1:at+1+n])
	}
	protowire.AppendVarint(dst[:at], uint64(n))
	return dst
}

func appendText(dst []byte, num protowire.Number, text string) []byte {
	if text == "" {
		return dst
	}
	return protowire.AppendString(protowire.AppendTag(dst, num, protowire.BytesType), text)
}

func appendInt(dst []byte, num protowire.Number, n int64) []byte {
	if n == 0 {
		return dst
	}
	return protowire.AppendVarint(protowire.AppendTag(dst, num, protowire.VarintType), uint64(n))
}

func appendBool(dst []byte, num protowire.Number, b bool) []byte {
	if !b {
		return dst
	}
	return append(protowire.AppendTag(dst, num, protowire.VarintType), 1)
}

// appendDuration appends a google.protobuf.Duration, also when it is zero: that it is there says something.
func appendDuration(dst []byte, num protowire.Number, d time.Duration) []byte {
	dst = protowire.AppendTag(dst, num, protowire.BytesType)
	dst, at := begin(dst)
	dst = appendInt(dst, 1, int64(d/time.Second))
	dst = appendInt(dst, 2, int64(d%time.Second))
	return end(dst, at)
}
