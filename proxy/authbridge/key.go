package authbridge

import (
	"bytes"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha1"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
)

// Key is the proxy's own, for clients that encrypt where the server expects the password in clear.
type Key struct {
	private *rsa.PrivateKey
	public  []byte // PEM
}

// keyBits is the size of the keys that servers make for themselves.
const keyBits = 2048

// NewKey makes a key, which takes a part of a second.
func NewKey() (*Key, error) {
	private, err := rsa.GenerateKey(rand.Reader, keyBits)
	if err != nil {
		return nil, fmt.Errorf("make an RSA key: %w", err)
	}
	der, err := x509.MarshalPKIXPublicKey(private.Public())
	if err != nil {
		return nil, fmt.Errorf("make an RSA key: %w", err)
	}
	return &Key{private, pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der})}, nil
}

// open decrypts what a client has made of its password, a NUL at its end. nil: it is no password, or
// not of the size that servers want.
func (k *Key) open(block, nonce []byte) []byte {
	if len(block) != k.private.Size() {
		return nil
	}
	text, err := rsa.DecryptOAEP(sha1.New(), nil, k.private, block, nil)
	if err != nil {
		return nil
	}
	mix(text, nonce)
	if end := bytes.IndexByte(text, 0); end >= 0 { // where a server stops reading
		clear(text[end:])
		text = text[:end]
	}
	if len(text) == 0 {
		return nil
	}
	return append(text, 0)
}

// seal encrypts a password for a server whose key came as PEM.
func seal(key, password, nonce []byte) ([]byte, error) {
	public, err := readKey(key)
	if err != nil {
		return nil, err
	}
	text := bytes.Clone(password)
	defer clear(text)
	mix(text, nonce)
	block, err := rsa.EncryptOAEP(sha1.New(), rand.Reader, public, text, nil)
	if errors.Is(err, rsa.ErrMessageTooLong) {
		return nil, Error(fmt.Sprintf("the password is too long for the server's RSA key of %d bits: give the server TLS, or a longer key", public.N.BitLen()))
	}
	if err != nil {
		return nil, Error("the server's RSA key cannot be used: " + err.Error())
	}
	return block, nil
}

// readKey reads the key of a server.
func readKey(text []byte) (*rsa.PublicKey, error) {
	block, _ := pem.Decode(text)
	if block == nil {
		return nil, Error("the server sent no RSA key where one was asked for")
	}
	key, err := x509.ParsePKIXPublicKey(block.Bytes)
	if err != nil {
		return nil, Error("the server's RSA key cannot be read: " + err.Error())
	}
	public, ok := key.(*rsa.PublicKey)
	if !ok {
		return nil, Error("the server's key is no RSA key")
	}
	return public, nil
}

// mix adds the server's nonce to a password, or takes it off.
func mix(text, nonce []byte) {
	for i := range text {
		text[i] ^= nonce[i%nonceLen]
	}
}

// nobodys returns a password that no account has, for the server to deny.
func nobodys() []byte { return append([]byte(rand.Text()), 0) }
