package identity

import (
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rsa"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"slices"
)

// keySet are the keys that an issuer has at one time. It is never modified.
type keySet struct {
	raw    []byte
	keys   []publishedKey
	shared bool // one secret, whatever key a token names
}

// publishedKey is a key and what its owner says about it; empty: nothing.
type publishedKey struct {
	id, algorithm string
	key           any
}

const (
	maxKeys = 100
	// minRSABits and maxRSABits keep out keys that are too weak, or made to take long.
	minRSABits = 2048
	maxRSABits = 8192
)

func sharedSecret(secret string) *keySet {
	return &keySet{keys: []publishedKey{{key: []byte(secret)}}, shared: true}
}

// find returns the key that a token names, if it fits the algorithm that the token names. Without a name there must be
// only one that fits, since trying them all would let a client choose how much work a bad token makes. A nil set has none.
func (s *keySet) find(id any, algorithm string) (key any, ok bool) {
	name, named := id.(string)
	if s == nil || id != nil && !named {
		return nil, false
	}
	for _, k := range s.keys {
		if named && k.id != name && !s.shared || k.algorithm != "" && k.algorithm != algorithm || !fits(algorithm, k.key) {
			continue
		}
		if ok {
			return nil, false
		}
		key, ok = k.key, true
	}
	return key, ok
}

// jwk is a key as RFC 7517 and RFC 7518 write it. Private and symmetric parts are not read.
type jwk struct {
	Type      string   `json:"kty"`
	ID        string   `json:"kid"`
	Algorithm string   `json:"alg"`
	Use       string   `json:"use"`
	Uses      []string `json:"key_ops"`
	Curve     string   `json:"crv"`
	N         string   `json:"n"`
	E         string   `json:"e"`
	X         string   `json:"x"`
	Y         string   `json:"y"`
}

// parseKeySet reads a JWK set. It leaves out keys that are not for signatures or of kinds that we do not know, as the RFC
// asks, and broken ones, so that one of them does not take the others along. A set without a usable key is an error.
func parseKeySet(raw []byte) (*keySet, error) {
	var document struct {
		Keys []json.RawMessage `json:"keys"`
	}
	if err := json.Unmarshal(raw, &document); err != nil {
		return nil, fmt.Errorf("read key set: %w", err)
	}
	if len(document.Keys) > maxKeys {
		return nil, fmt.Errorf("read key set: %d keys are more than %d", len(document.Keys), maxKeys)
	}
	s := &keySet{raw: raw}
	var faults []error
	for n, text := range document.Keys {
		var j jwk
		err := json.Unmarshal(text, &j)
		if err == nil && !j.signs() {
			continue
		}
		var key any
		if err == nil {
			key, err = j.public()
		}
		if err != nil {
			faults = append(faults, fmt.Errorf("key %d: %w", n, err))
			continue
		}
		s.keys = append(s.keys, publishedKey{j.ID, j.Algorithm, key})
	}
	if len(s.keys) == 0 {
		return nil, fmt.Errorf("read key set: no usable key: %w", errors.Join(faults...))
	}
	return s, nil
}

// signs tells whether a key is for signatures, as far as its owner says.
func (j *jwk) signs() bool {
	return (j.Use == "" || j.Use == "sig") && (j.Uses == nil || slices.Contains(j.Uses, "verify"))
}

func (j *jwk) public() (any, error) {
	switch j.Type {
	case "RSA":
		return j.rsa()
	case "EC":
		return j.ec()
	case "OKP":
		x, err := base64.RawURLEncoding.DecodeString(j.X)
		if err != nil || j.Curve != "Ed25519" || len(x) != ed25519.PublicKeySize {
			return nil, fmt.Errorf("OKP: not a key on Ed25519")
		}
		return ed25519.PublicKey(x), nil
	}
	// Symmetric keys too: one that is published is no secret.
	return nil, fmt.Errorf("kty %.20q: not a public key that is supported", j.Type)
}

func (j *jwk) rsa() (*rsa.PublicKey, error) {
	n, errN := base64.RawURLEncoding.DecodeString(j.N)
	e, errE := base64.RawURLEncoding.DecodeString(j.E)
	if errN != nil || errE != nil || len(e) == 0 || len(e) > 4 {
		return nil, errors.New("RSA: n or e is not as it should be")
	}
	modulus, exponent := new(big.Int).SetBytes(n), new(big.Int).SetBytes(e).Int64()
	if bits := modulus.BitLen(); bits < minRSABits || bits > maxRSABits {
		return nil, fmt.Errorf("RSA: %d bits are not from %d to %d", bits, minRSABits, maxRSABits)
	}
	if exponent < 3 || exponent%2 == 0 || exponent > 1<<31-1 || modulus.Bit(0) == 0 {
		return nil, errors.New("RSA: n or e is even, or e too small or too large")
	}
	return &rsa.PublicKey{N: modulus, E: int(exponent)}, nil
}

func (j *jwk) ec() (*ecdsa.PublicKey, error) {
	curves := map[string]elliptic.Curve{"P-256": elliptic.P256(), "P-384": elliptic.P384(), "P-521": elliptic.P521()}
	curve, known := curves[j.Curve]
	if !known {
		return nil, fmt.Errorf("EC: curve %.20q is not supported", j.Curve)
	}
	x, errX := base64.RawURLEncoding.DecodeString(j.X)
	y, errY := base64.RawURLEncoding.DecodeString(j.Y)
	size := (curve.Params().BitSize + 7) / 8
	if errX != nil || errY != nil || len(x) != size || len(y) != size {
		return nil, errors.New("EC: x or y is not as it should be")
	}
	// It refuses points that are not on the curve.
	return ecdsa.ParseUncompressedPublicKey(curve, slices.Concat([]byte{4}, x, y))
}
