package digest

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"hash"
	"maps"
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
func (k Key) ID() []byte { return k.sum(idBytes, "key") }

// Object is the digest of an object.
type Object struct {
	Whole []byte `json:"w"`
	// Fields are the digests of its fields, in the order of their names; empty where a set has no room for them.
	Fields []byte `json:"f,omitempty"`
}

// field is a field of an object, down to the second level: data.password, spec.template.
type field struct {
	path  string
	value []byte
}

// Of returns the digest of an object, given as JSON, that is at a place of the archive: its resource and its name.
func (k Key) Of(place Place, content []byte) (Object, error) {
	fields, err := fieldsOf(content)
	if err != nil {
		return Object{}, fmt.Errorf("%s: %w", place, err)
	}
	made := Object{}
	whole := k.begin(place.Resource, place.Name)
	for _, f := range fields {
		write(whole, []byte(f.path), f.value)
		made.Fields = append(made.Fields, k.ofField(place, f)...)
	}
	made.Whole = whole.Sum(nil)[:objectBytes]
	return made, nil
}

// Differences returns the names of the fields that have another digest than the recorded object has; nil if the object is the
// same. It is empty if it is another one and the set does not say where.
func (k Key) Differences(place Place, recorded Object, content []byte) ([]string, error) {
	present, err := k.Of(place, content)
	if err != nil || hmac.Equal(present.Whole, recorded.Whole) {
		return nil, err
	}
	differing := []string{}
	if len(recorded.Fields) == 0 {
		return differing, nil
	}
	known := map[string]bool{}
	for digest := range slices.Chunk(recorded.Fields, fieldBytes) {
		known[string(digest)] = true
	}
	fields, err := fieldsOf(content)
	if err != nil {
		return nil, err
	}
	for _, f := range fields {
		if !known[string(k.ofField(place, f))] {
			differing = append(differing, f.path)
		}
	}
	return differing, nil
}

// sum returns so many bytes of the digest of some parts.
func (k Key) sum(length int, parts ...string) []byte { return k.begin(parts...).Sum(nil)[:length] }

func (k Key) begin(parts ...string) hash.Hash {
	sum := hmac.New(sha256.New, k)
	for _, part := range parts {
		write(sum, []byte(part))
	}
	return sum
}

// write writes parts with their lengths, so that no other parts give the same.
func write(into hash.Hash, parts ...[]byte) {
	for _, part := range parts {
		_ = binary.Write(into, binary.BigEndian, uint64(len(part)))
		into.Write(part)
	}
}

func (k Key) ofField(place Place, f field) []byte {
	return k.sum(fieldBytes, place.Resource, place.Name, f.path, string(f.value))
}

func fieldsOf(content []byte) (fields []field, err error) {
	var object map[string]json.RawMessage
	if err := json.Unmarshal(content, &object); err != nil {
		return nil, fmt.Errorf("it is no JSON object: %w", err)
	}
	for _, name := range slices.Sorted(maps.Keys(object)) {
		var inner map[string]json.RawMessage
		if json.Unmarshal(object[name], &inner) != nil || len(inner) == 0 {
			if fields, err = appendField(fields, name, object[name]); err != nil {
				return nil, err
			}
			continue
		}
		for _, key := range slices.Sorted(maps.Keys(inner)) {
			if fields, err = appendField(fields, name+"."+key, inner[key]); err != nil {
				return nil, err
			}
		}
	}
	return fields, nil
}

// appendField appends a field with its value in the one form that encoding/json gives it.
func appendField(fields []field, path string, value json.RawMessage) ([]field, error) {
	var parsed any
	decoder := json.NewDecoder(bytes.NewReader(value))
	decoder.UseNumber() // a float would take two large numbers for one
	if err := decoder.Decode(&parsed); err != nil {
		return nil, err
	}
	canonical, err := json.Marshal(parsed)
	return append(fields, field{path, canonical}), err
}
