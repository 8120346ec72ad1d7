package digest

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"hash"
	"slices"
)

// Key makes digests. It has KeyBytes bytes.
type Key []byte

const (
	// KeyBytes is the length of a Key.
	KeyBytes = 32
	// idBytes, objectBytes and fieldBytes are how many bytes are kept of a digest. Nobody without the key can look for another
	// object with the same digest. Those of fields only name what differs: the object's own decides whether something does.
	idBytes     = 8
	objectBytes = 16
	fieldBytes  = 4
)

// ID names the key without giving it away.
func (k Key) ID() []byte { return k.sum(idBytes, []byte("key")) }

// Object is the digest of an object.
type Object struct {
	Whole []byte `json:"w"`
	// Fields are the digests of its fields, in the order of their names; empty where a set has no room for them.
	Fields []byte `json:"f,omitempty"`
}

// maxFields is how many fields of an object have digests of their own: of one with more none has. The objects of this world have
// far fewer, and what a tenant puts into an archive must not fill the memory.
const maxFields = 1000

// field is a field of an object at the second level, for example data, password. Name is empty where the first level is no
// object.
type field struct {
	group, name string
	value       []byte
}

func (f field) String() string {
	if f.name == "" {
		return f.group
	}
	return f.group + "." + f.name
}

// Of returns the digest of the content of a file that is at a place of the archive. It covers every byte: Velero writes a file
// once, and nobody has a reason to write it again.
func (k Key) Of(place Place, content []byte) Object {
	made := Object{Whole: k.whole(place, content)}
	for _, f := range fieldsOf(content) {
		made.Fields = append(made.Fields, k.ofField(place, f)...)
	}
	return made
}

func (k Key) whole(place Place, content []byte) []byte {
	return k.sum(objectBytes, []byte(place.Resource), []byte(place.Name), content)
}

// Same reports whether the content is that of the recorded object.
func (k Key) Same(place Place, recorded Object, content []byte) bool {
	return hmac.Equal(k.whole(place, content), recorded.Whole)
}

// Differences returns the names of the fields that have another digest than the recorded object has, as far as that is known.
func (k Key) Differences(place Place, recorded Object, content []byte) (differing []string) {
	known := map[string]bool{}
	for digest := range slices.Chunk(recorded.Fields, fieldBytes) {
		known[string(digest)] = true
	}
	if len(known) == 0 {
		return nil
	}
	for _, f := range fieldsOf(content) {
		if !known[string(k.ofField(place, f))] {
			differing = append(differing, f.String())
		}
	}
	return differing
}

// sum returns so many bytes of the digest of some parts. Their lengths are covered, so that no other parts give the same.
func (k Key) sum(length int, parts ...[]byte) []byte {
	sum := hmac.New(sha256.New, k)
	for _, part := range parts {
		write(sum, part)
	}
	return sum.Sum(nil)[:length]
}

func write(into hash.Hash, part []byte) {
	_ = binary.Write(into, binary.BigEndian, uint64(len(part))) // a hash returns no error
	into.Write(part)
}

func (k Key) ofField(place Place, f field) []byte {
	return k.sum(fieldBytes, []byte(place.Resource), []byte(place.Name), []byte(f.group), []byte(f.name), f.value)
}

var errManyFields = errors.New("many fields")

// fieldsOf returns the fields of an object; none if it is not JSON, or has too many.
func fieldsOf(content []byte) (fields []field) {
	add := func(f field) error {
		if len(fields) == maxFields {
			return errManyFields
		}
		fields = append(fields, f)
		return nil
	}
	err := eachField(content, func(group string, value json.RawMessage) error {
		if len(value) == 0 || value[0] != '{' || bytes.Equal(value, []byte("{}")) {
			return add(field{group: group, value: value})
		}
		return eachField(value, func(name string, value json.RawMessage) error { return add(field{group, name, value}) })
	})
	if err != nil {
		return nil
	}
	return fields
}

// eachField calls do for the fields of a JSON object, one after the other: it may have any number.
func eachField(object []byte, do func(name string, value json.RawMessage) error) error {
	decoder := json.NewDecoder(bytes.NewReader(object))
	if _, err := decoder.Token(); err != nil {
		return err
	}
	for decoder.More() {
		name, err := decoder.Token()
		if err != nil {
			return err
		}
		text, is := name.(string)
		if !is {
			return errors.New("no JSON object")
		}
		var value json.RawMessage
		if err := decoder.Decode(&value); err != nil {
			return err
		}
		if err := do(text, value); err != nil {
			return err
		}
	}
	return nil
}
