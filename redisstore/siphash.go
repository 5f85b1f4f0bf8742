package redisstore

import (
	"encoding/binary"
	"math/bits"
)

// sipHash is SipHash-2-4 with 128 bits of output (Aumasson and Bernstein): a fast hash under a key, so that clients who
// choose the values cannot choose where their counters fall. The standard library has no keyed hash that is stable
// across processes and does not allocate.
func sipHash(key [16]byte, msg []byte) (hi, lo uint64) {
	k0, k1 := binary.LittleEndian.Uint64(key[:8]), binary.LittleEndian.Uint64(key[8:])
	s := sipState{k0 ^ 0x736f6d6570736575, k1 ^ 0x646f72616e646f6d ^ 0xee, k0 ^ 0x6c7967656e657261, k1 ^ 0x7465646279746573}
	last := uint64(len(msg)) << 56
	for ; len(msg) >= 8; msg = msg[8:] {
		s.block(binary.LittleEndian.Uint64(msg))
	}
	for i, b := range msg {
		last |= uint64(b) << (8 * i)
	}
	s.block(last)
	s.v2 ^= 0xee
	s.rounds(4)
	lo = s.v0 ^ s.v1 ^ s.v2 ^ s.v3
	s.v1 ^= 0xdd
	s.rounds(4)
	return s.v0 ^ s.v1 ^ s.v2 ^ s.v3, lo
}

type sipState struct{ v0, v1, v2, v3 uint64 }

func (s *sipState) block(m uint64) {
	s.v3 ^= m
	s.rounds(2)
	s.v0 ^= m
}

func (s *sipState) rounds(n int) {
	v0, v1, v2, v3 := s.v0, s.v1, s.v2, s.v3
	for range n {
		v0 += v1
		v2 += v3
		v1 = bits.RotateLeft64(v1, 13) ^ v0
		v3 = bits.RotateLeft64(v3, 16) ^ v2
		v0 = bits.RotateLeft64(v0, 32)
		v2 += v1
		v0 += v3
		v1 = bits.RotateLeft64(v1, 17) ^ v2
		v3 = bits.RotateLeft64(v3, 21) ^ v0
		v2 = bits.RotateLeft64(v2, 32)
	}
	s.v0, s.v1, s.v2, s.v3 = v0, v1, v2, v3
}
