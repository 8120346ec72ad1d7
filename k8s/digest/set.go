package digest

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"path"
	"slices"
	"strings"
)

// MaxSetBytes is the size of a packed set at most: it fits into a ConfigMap.
const MaxSetBytes = 900 << 10

// maxUnpackedBytes limits what a set is unpacked to.
const maxUnpackedBytes = 64 << 20

// Place is where an object is in an archive: its resource with the group, for example deployments.apps, and its name.
type Place struct{ Resource, Name string }

// String implements fmt.Stringer.
func (p Place) String() string { return p.Resource + "/" + p.Name }

// Set holds the digests of a namespace's objects in a backup.
type Set struct {
	// KeyID is the ID of the key.
	KeyID []byte `json:"key"`
	// Objects are by resource and name.
	Objects map[string]map[string]Object `json:"objects"`
	// Left is how many objects the set has no room for.
	Left int `json:"left,omitempty"`
}

// NewSet returns an empty set for the key.
func NewSet(key Key) *Set {
	return &Set{KeyID: key.ID(), Objects: map[string]map[string]Object{}}
}

// Add adds the digest of an object.
func (s *Set) Add(place Place, object Object) {
	if s.Objects[place.Resource] == nil {
		s.Objects[place.Resource] = map[string]Object{}
	}
	s.Objects[place.Resource][place.Name] = object
}

// Get returns the digest of an object.
func (s *Set) Get(place Place) (Object, bool) {
	object, found := s.Objects[place.Resource][place.Name]
	return object, found
}

// Places returns the places of all objects, in order.
func (s *Set) Places() (places []Place) {
	for _, resource := range slices.Sorted(maps.Keys(s.Objects)) {
		for _, name := range slices.Sorted(maps.Keys(s.Objects[resource])) {
			places = append(places, Place{resource, name})
		}
	}
	return places
}

// Pack returns the set in at most limit bytes. One that is larger loses the digests of fields first, and then objects, the last
// in the order of their places.
func (s *Set) Pack(limit int) ([]byte, error) {
	packed, err := s.pack()
	if err != nil || len(packed) <= limit {
		return packed, err
	}
	for _, place := range s.Places() {
		whole, _ := s.Get(place)
		s.Add(place, Object{Whole: whole.Whole})
	}
	for {
		if packed, err = s.pack(); err != nil || len(packed) <= limit {
			return packed, err
		}
		places := s.Places()
		if len(places) == 0 {
			return nil, fmt.Errorf("a set without objects has %d bytes", len(packed))
		}
		for _, place := range places[len(places)*limit/(len(packed)+1):] {
			delete(s.Objects[place.Resource], place.Name)
			s.Left++
		}
	}
}

func (s *Set) pack() ([]byte, error) {
	var packed bytes.Buffer
	writer := gzip.NewWriter(&packed)
	if err := errors.Join(json.NewEncoder(writer).Encode(s), writer.Close()); err != nil {
		return nil, fmt.Errorf("pack a set of digests: %w", err)
	}
	return packed.Bytes(), nil
}

// Unpack returns the set that Pack has packed.
func Unpack(packed []byte) (*Set, error) {
	reader, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return nil, fmt.Errorf("unpack a set of digests: %w", err)
	}
	set := &Set{}
	if err := json.NewDecoder(io.LimitReader(reader, maxUnpackedBytes)).Decode(set); err != nil {
		return nil, fmt.Errorf("unpack a set of digests: %w", err)
	}
	return set, nil
}

// preferred ends the folder in which an archive has a copy of an object in the version that the API server preferred.
const preferred = "-preferredversion"

// Spelled returns the path of an archive's file as Velero takes it when it restores, and whether Velero spells it so itself: it
// cleans what it reads, so that several spellings are one file.
func Spelled(file string) (clean string, byVelero bool) {
	clean = strings.TrimPrefix(path.Clean("/"+file), "/")
	return clean, clean == strings.TrimPrefix(file, "./")
}

// PlaceOf returns the place of a namespace's object in an archive of Velero, by the path of its file. copied: the file is the
// copy of an object in the preferred version. Other files have no place.
func PlaceOf(file, namespace string) (place Place, copied, found bool) {
	file, _ = Spelled(file)
	parts := strings.Split(file, "/")
	if len(parts) == 6 && strings.HasSuffix(parts[2], preferred) {
		parts, copied = slices.Delete(parts, 2, 3), true
	}
	if len(parts) != 5 || parts[0] != "resources" || parts[2] != "namespaces" || parts[3] != namespace {
		return Place{}, false, false
	}
	name, isJSON := strings.CutSuffix(parts[4], ".json")
	return Place{Resource: parts[1], Name: name}, copied, isJSON
}
