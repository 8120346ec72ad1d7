package codec

import (
	"crypto/cipher"
	"fmt"

	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/sdk/converter"
	"google.golang.org/protobuf/proto"
)

// An encrypted payload as it lies in Temporal: metadata, and as data a nonce of 12 bytes followed by what AES-256-GCM
// makes of the original payload, metadata and all. Histories depend on it.
const (
	// Encoding is the payload's encoding.
	Encoding = "binary/encrypted"
	// MetadataKeyID is the metadata field with the ID of the key.
	MetadataKeyID = "encryption-key-id"
)

// UnreadableError says why an encrypted payload cannot be read.
type UnreadableError struct {
	// KeyID is the key that the payload says it is encrypted with.
	KeyID  string
	reason string
}

func (e *UnreadableError) Error() string {
	return fmt.Sprintf("payload encrypted with key %q: %s", e.KeyID, e.reason)
}

// Codec encrypts payloads with the current key and reads those of every key, and those in clear.
type Codec struct{ keys *Keys }

var _ converter.PayloadCodec = (*Codec)(nil)

// New returns a codec that uses these keys as they change.
func New(keys *Keys) *Codec { return &Codec{keys: keys} }

// Encode implements converter.PayloadCodec.
func (c *Codec) Encode(payloads []*commonpb.Payload) ([]*commonpb.Payload, error) {
	set := c.keys.set.Load()
	if set.encryptWith == "" {
		return payloads, nil
	}
	encoded := make([]*commonpb.Payload, len(payloads))
	for i, payload := range payloads {
		plain, err := proto.Marshal(payload)
		if err != nil {
			return nil, fmt.Errorf("encrypt payload: %w", err)
		}
		encoded[i] = seal(set.ciphers[set.encryptWith], set.encryptWith, plain)
	}
	return encoded, nil
}

// Decode implements converter.PayloadCodec. Its error is an *UnreadableError.
func (c *Codec) Decode(payloads []*commonpb.Payload) ([]*commonpb.Payload, error) {
	decoded := make([]*commonpb.Payload, len(payloads))
	for i, payload := range payloads {
		if string(payload.GetMetadata()[converter.MetadataEncoding]) != Encoding {
			decoded[i] = payload
			continue
		}
		var err error
		if decoded[i], err = c.open(payload); err != nil {
			return nil, err
		}
	}
	return decoded, nil
}

func seal(key cipher.AEAD, id string, plain []byte) *commonpb.Payload {
	return &commonpb.Payload{
		Metadata: map[string][]byte{converter.MetadataEncoding: []byte(Encoding), MetadataKeyID: []byte(id)},
		Data:     key.Seal(nil, nil, plain, bound(id)),
	}
}

func (c *Codec) open(payload *commonpb.Payload) (*commonpb.Payload, error) {
	id := string(payload.GetMetadata()[MetadataKeyID])
	key, found := c.keys.find(id)
	if !found {
		reason := "no key can be read without --payload-keys-dir"
		if c.keys.dir != "" {
			reason = "there is no such key in " + c.keys.dir
		}
		return nil, &UnreadableError{KeyID: id, reason: reason}
	}
	plain, err := key.Open(nil, nil, payload.GetData(), bound(id))
	if err != nil {
		return nil, &UnreadableError{KeyID: id, reason: "it was altered, or this is another key of that name"}
	}
	opened := &commonpb.Payload{}
	if err := proto.Unmarshal(plain, opened); err != nil {
		return nil, &UnreadableError{KeyID: id, reason: "its content is not a payload"}
	}
	return opened, nil
}

// bound is the metadata that a ciphertext is bound to: a payload whose metadata was changed is refused.
func bound(id string) []byte { return []byte(Encoding + "\x00" + id) }
