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

const (
	// maxUnpackedBytes limits what a set is unpacked to.
	maxUnpackedBytes = 64 << 20
	// maxObjects is how many objects a set holds before it is packed: more than fit. maxFieldBytes is how much of their fields.
	maxObjects    = 50_000
	maxFieldBytes = 4 << 20
	// maxSegmentBytes is how long a part of a file's path may be: Velero unpacks the archive into a file system.
	maxSegmentBytes = 255
)

// Place is where an object is in an archive: its resource with the group, for example deployments.apps, and its name. The
// resource is followed by the API version of what is there in another than the preferred one, and by "cluster" of what is in no
// namespace: secrets/v1, persistentvolumes/cluster.
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
	// Copies is how many copies of objects in the preferred API version the archive has besides.
	Copies int `json:"copies,omitempty"`

	added, fieldBytes int
}

// NewSet returns an empty set for the key.
func NewSet(key Key) *Set {
	return &Set{KeyID: key.ID(), Objects: map[string]map[string]Object{}}
}

// Add adds the digest of an object, as far as there is room.
func (s *Set) Add(place Place, object Object) {
	if s.added++; s.added > maxObjects {
		s.Left++
		return
	}
	if s.fieldBytes += len(object.Fields); s.fieldBytes > maxFieldBytes {
		object.Fields = nil
	}
	s.put(place, object)
}

// Total is how many objects the archive has.
func (s *Set) Total() int {
	total := s.Left
	for _, objects := range s.Objects {
		total += len(objects)
	}
	return total
}

func (s *Set) put(place Place, object Object) {
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
		s.put(place, Object{Whole: whole.Whole})
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

// PlaceOf returns the place of an object in an archive of Velero, by the path of its file. copied: the file is the copy of an
// object in the preferred version. What cannot be restored into the namespace, or is no object, has no place.
func PlaceOf(file, namespace string) (place Place, copied, found bool) {
	const shortest = 4 // resources, secrets, cluster, name
	file, _ = Spelled(file)
	parts := strings.Split(file, "/")
	last := len(parts) - 1
	if last+1 < shortest || parts[0] != "resources" ||
		slices.ContainsFunc(parts, func(part string) bool { return len(part) > maxSegmentBytes }) {
		return Place{}, false, false
	}
	name, isJSON := strings.CutSuffix(parts[last], ".json")
	resource, scope := parts[1], parts[2:last]
	if first := scope[0]; first != "namespaces" && first != "cluster" {
		if scope, copied = scope[1:], strings.HasSuffix(first, preferred); !copied {
			resource += "/" + first
		}
	}
	switch {
	case slices.Equal(scope, []string{"namespaces", namespace}):
	case slices.Equal(scope, []string{"cluster"}):
		resource += "/cluster"
	default:
		return Place{}, false, false
	}
	return Place{Resource: resource, Name: name}, copied, isJSON
}
