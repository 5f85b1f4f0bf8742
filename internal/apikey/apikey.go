// Package apikey makes and checks the credentials that sluice hands out: API keys of its users' clients and tokens of operators' programs.
//
// One is written as slc_<id>_<secret>_<crc>, a token with slt_ in front. The secret has 256 random bits and is kept nowhere: what is
// kept is its HMAC under the pepper, a secret of the installation that is not in the database. The id is public. Part of it is a tag that only
// the holder of the pepper can make, so an id that was never handed out is recognised as such without asking anybody. The crc finds
// mistyped and cut-off ones, and lets scanners of source code know one when they see it.
package apikey

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base32"
	"fmt"
	"hash/crc32"
	"strings"
)

// kind is what a credential is for, and how it begins.
type kind string

const (
	key   kind = "slc"
	token kind = "slt"
)

const (
	nonceBytes  = 10 // 2^40 ids can be made before two are likely to be the same; the database refuses the second
	tagBytes    = 5  // a guess passes once in 2^40, and then costs one look-up
	secretBytes = 32

	idLength     = (nonceBytes + tagBytes) * 8 / 5
	secretLength = (secretBytes*8 + 4) / 5
	crcLength    = 8
	length       = len("slc_") + idLength + len("_") + secretLength + len("_") + crcLength
)

// HashLength is the length of what Hash returns.
const HashLength = sha256.Size

// encoding has no character that ends a word, so that a double click selects all of it, and nothing that depends on upper and lower case.
var encoding = base32.NewEncoding("abcdefghijklmnopqrstuvwxyz234567").WithPadding(base32.NoPadding)

// New makes an API key: the text, which is shown once and not kept, its id, and the hash to be kept.
func New(pepper string) (text, id string, hash []byte) { return key.make(pepper) }

// NewToken is New for the token of an operator's program.
func NewToken(pepper string) (text, id string, hash []byte) { return token.make(pepper) }

// Renew makes another secret for the API key of that id.
func Renew(pepper, id string) (text string, hash []byte) {
	secret := newSecret()
	return key.write(id, secret), Hash(pepper, secret)
}

// Parse takes an API key apart. It reports false for everything that is not exactly of the form: text that clients send is mostly somebody
// else's token. Whether the key exists is not looked at.
func Parse(text string) (id, secret string, ok bool) { return key.parse(text) }

// ParseToken is Parse for tokens.
func ParseToken(text string) (id, secret string, ok bool) { return token.parse(text) }

// Hash is what is kept of a secret.
func Hash(pepper, secret string) []byte { return mac(pepper, secret) }

// Genuine tells whether the id of an API key was made with this pepper. Others are on no record.
func Genuine(pepper, id string) bool { return key.genuine(pepper, id) }

// GenuineToken is Genuine for tokens.
func GenuineToken(pepper, id string) bool { return token.genuine(pepper, id) }

// Matches tells whether a hash is the first or the second of those kept, in a time that does not depend on which, nor on how many there
// are. Where nothing is kept it compares with what nothing equals, so an unknown id costs the same.
func Matches(kept [][]byte, hash []byte) bool {
	var none [HashLength]byte // no HMAC that anybody found is zero
	first, second := none[:], none[:]
	if len(kept) > 0 {
		first = kept[0]
	}
	if len(kept) > 1 {
		second = kept[1]
	}
	one, two := subtle.ConstantTimeCompare(first, hash), subtle.ConstantTimeCompare(second, hash)
	return one|two == 1
}

func (k kind) make(pepper string) (text, id string, hash []byte) {
	bits := make([]byte, nonceBytes, nonceBytes+tagBytes)
	_, _ = rand.Read(bits) // never fails
	id = encoding.EncodeToString(append(bits, k.tag(pepper, bits)...))
	secret := newSecret()
	return k.write(id, secret), id, Hash(pepper, secret)
}

func newSecret() string {
	var bits [secretBytes]byte
	_, _ = rand.Read(bits[:]) // never fails
	return encoding.EncodeToString(bits[:])
}

func (k kind) write(id, secret string) string {
	text := string(k) + "_" + id + "_" + secret
	return fmt.Sprintf("%s_%08x", text, crc32.ChecksumIEEE([]byte(text)))
}

func (k kind) parse(text string) (id, secret string, ok bool) {
	if len(text) != length || !strings.HasPrefix(text, string(k)+"_") {
		return "", "", false
	}
	body, crc := text[:length-crcLength-1], text[length-crcLength-1:]
	if crc != fmt.Sprintf("_%08x", crc32.ChecksumIEEE([]byte(body))) {
		return "", "", false
	}
	id, secret = body[len("slc_"):len("slc_")+idLength], body[len("slc_")+idLength+1:]
	if body[len("slc_")+idLength] != '_' || !encoded(id) || !encoded(secret) {
		return "", "", false
	}
	return id, secret, true
}

// encoded tells whether text is of the encoding's characters. Decoding would not do: it passes over line ends.
func encoded(text string) bool {
	for i := range len(text) {
		if c := text[i]; (c < 'a' || c > 'z') && (c < '2' || c > '7') {
			return false
		}
	}
	return true
}

func (k kind) genuine(pepper, id string) bool {
	well := len(id) == idLength && encoded(id) // other texts may decode to the same bits
	bits, _ := encoding.DecodeString(id)
	if len(bits) != nonceBytes+tagBytes {
		bits = make([]byte, nonceBytes+tagBytes) // the same work, whatever it is
	}
	same := subtle.ConstantTimeCompare(bits[nonceBytes:], k.tag(pepper, bits[:nonceBytes])) == 1
	return same && well
}

// tag is made from a message that no secret equals, because of its spaces.
func (k kind) tag(pepper string, nonce []byte) []byte {
	return mac(pepper, "id of "+string(k)+" "+string(nonce))[:tagBytes]
}

func mac(pepper, message string) []byte {
	h := hmac.New(sha256.New, []byte(pepper))
	h.Write([]byte(message))
	return h.Sum(nil)
}
