package redisstore

import (
	"encoding/base64"
	"encoding/binary"
	"fmt"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/internal/counter"
)

// A Redis key is "rl1:{" tag "}" rest:
//
//   - rl1 is the format's version;
//   - the tag, 96 bits of a keyed hash of the anchor (the subject, or the rule where it counts by none), decides the
//     slot, so that all counters of a subject can be one script, and nobody without the hash key can aim at a slot;
//   - the rest, 42 bits of a keyed hash of everything else: rule, algorithm, window and the other dimensions.
//
// Nothing a client sent stands in a key. 29 characters: up to 30 cost Redis 128 bytes a counter, more cost 144.
const (
	keyPrefix = "rl1:{"
	keyLength = len(keyPrefix) + tagLength + 1 + restLength
	tagLength = 16 // 96 bits in base64
	// restLength: 42 bits tell apart the counters of one tag. With a thousand of them two meet with probability 10^-7.
	restLength = 7
)

const base64Digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"

// appendKey appends the Redis key of a charge. buf is scratch for the encoding; its grown form is returned for reuse.
func appendKey(dst, buf []byte, hashKey [16]byte, c *sluice.Charge) (key, scratch []byte) {
	buf = counter.AppendAnchor(buf[:0], &c.Key)
	hi, lo := sipHash(hashKey, buf)
	var tag [12]byte
	binary.BigEndian.PutUint64(tag[:8], hi)
	binary.BigEndian.PutUint32(tag[8:], uint32(lo>>32))
	dst = append(dst, keyPrefix...)
	dst = base64.RawURLEncoding.AppendEncode(dst, tag[:])
	dst = append(dst, '}')

	buf = counter.AppendRest(buf[:0], c)
	_, rest := sipHash(hashKey, buf)
	for i := range restLength {
		dst = append(dst, base64Digits[rest>>(6*i)&63])
	}
	return dst, buf
}

// KeyOf returns the Redis key of the counter that a limit keeps for a key, for people who look into Redis.
func (s *Store) KeyOf(key sluice.Key, limit sluice.Limit) string {
	name, _ := appendKey(nil, nil, s.hashKey, &sluice.Charge{Key: key, Limit: limit})
	return string(name)
}

// Slot returns the Redis Cluster slot of a key of this store: CRC-16 (XMODEM) of its tag, modulo 16384.
func Slot(key string) uint16 {
	crc := uint16(0)
	for i := len(keyPrefix); i < len(keyPrefix)+tagLength; i++ {
		crc = crc<<8 ^ crcTable[byte(crc>>8)^key[i]]
	}
	return crc & 16383
}

var crcTable = makeCRCTable()

func makeCRCTable() (table [256]uint16) {
	for i := range table {
		crc := uint16(i) << 8
		for range 8 {
			if crc&0x8000 != 0 {
				crc = crc<<1 ^ 0x1021
			} else {
				crc <<= 1
			}
		}
		table[i] = crc
	}
	return table
}

// ProbeKey returns a key that no counter has, in a slot for which fits is true; nil fits any.
func ProbeKey(fits func(slot uint16) bool) string {
	for i := 0; ; i++ {
		key := fmt.Sprintf("%s%0*d}probe", keyPrefix, tagLength, i)
		if fits == nil || fits(Slot(key)) {
			return key
		}
	}
}
