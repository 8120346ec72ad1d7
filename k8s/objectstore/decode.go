package objectstore

import (
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
)

// The tenant may have written any file in its bucket, to fill the memory of its reader. A file is read piece by piece, what is
// not needed is dropped at once, and the rest is limited: far beyond what a namespace in Kubernetes can hold.
const (
	// maxFileBytes limits a file as it lies in the bucket.
	maxFileBytes = 4 << 20
	// maxListBytes and maxResultsBytes limit files as they are unpacked: of lists most is dropped, results are kept whole.
	maxListBytes    = 16 << 20
	maxResultsBytes = 8 << 20
	// maxLines and maxNamespaces limit what is kept of results.
	maxLines      = 60_000
	maxNamespaces = 1_000
	// maxPieceBytes limits one entry of a list.
	maxPieceBytes = 64 << 10
	// maxKept limits how many entries of a list are kept.
	maxKept = 200_000
	// maxVolumesBytes limits what is kept of a list of volumes, which has larger entries.
	maxVolumesBytes = 4 << 20
)

var errTooLarge = errors.New("too large")

// unpack has decode read the JSON value of a gzipped file, unpacked to at most limit bytes.
func unpack(packed io.Reader, limit int, decode func(*json.Decoder) error) error {
	unpacked, err := gzip.NewReader(packed)
	if err != nil {
		return err
	}
	decoder := json.NewDecoder(&limited{from: unpacked, left: limit})
	if err := decode(decoder); err != nil {
		return err
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return errors.Join(errors.New("more than one value"), err)
	}
	return nil
}

// decodeVolumes keeps the volumes of a namespace's claims.
func decodeVolumes(namespace string, into *[]VolumeInfo) func(*json.Decoder) error {
	return func(decoder *json.Decoder) error {
		kept := 0
		return eachElement(decoder, func(piece json.RawMessage) error {
			var info VolumeInfo
			if err := json.Unmarshal(piece, &info); err != nil {
				return err
			}
			if info.PVCNamespace != namespace {
				return nil
			}
			if kept += len(piece); kept > maxVolumesBytes {
				return errTooLarge
			}
			*into = append(*into, info)
			return nil
		})
	}
}

// decodeResources keeps the objects of a namespace.
func decodeResources(namespace string, into *ResourceList) func(*json.Decoder) error {
	return func(decoder *json.Decoder) error {
		kept := 0
		*into = ResourceList{}
		return eachMember(decoder, func(kind string) error {
			return eachElement(decoder, func(piece json.RawMessage) error {
				var entry string
				if err := json.Unmarshal(piece, &entry); err != nil {
					return err
				}
				if !strings.HasPrefix(entry, namespace+"/") {
					return nil
				}
				if kept++; kept > maxKept {
					return errTooLarge
				}
				(*into)[kind] = append((*into)[kind], entry)
				return nil
			})
		})
	}
}

// resultsDecoder reads results, and keeps only what fits the limits.
type resultsDecoder struct {
	*json.Decoder

	lines, namespaces int
}

// results reads `{"errors": {...}, "warnings": {...}}`.
func (d *resultsDecoder) results(into *Results) error {
	return eachMember(d.Decoder, func(key string) error {
		result := Result{}
		err := eachMember(d.Decoder, func(of string) error {
			switch of {
			case "velero":
				return d.read(&result.Velero)
			case "cluster":
				return d.read(&result.Cluster)
			case "namespaces":
				return eachMember(d.Decoder, func(namespace string) error {
					if d.namespaces++; d.namespaces > maxNamespaces {
						return errTooLarge
					}
					if result.Namespaces == nil {
						result.Namespaces = map[string][]string{}
					}
					lines := []string{}
					err := d.read(&lines)
					result.Namespaces[namespace] = lines
					return err
				})
			}
			return fmt.Errorf("unknown %q", of)
		})
		if key != WarningsKey && key != ErrorsKey {
			return fmt.Errorf("unknown %q", key)
		}
		(*into)[key] = result
		return err
	})
}

func (d *resultsDecoder) read(into *[]string) error {
	return eachElement(d.Decoder, func(piece json.RawMessage) error {
		var line string
		if d.lines++; d.lines > maxLines {
			return errTooLarge
		}
		if err := json.Unmarshal(piece, &line); err != nil {
			return err
		}
		*into = append(*into, line)
		return nil
	})
}

// eachMember calls do, which reads the value, for the keys of an object; null is an empty object.
func eachMember(decoder *json.Decoder, do func(key string) error) error {
	if done, err := open(decoder, '{'); done || err != nil {
		return err
	}
	for decoder.More() {
		key, err := decoder.Token()
		if err != nil {
			return err
		}
		name, _ := key.(string) // JSON's keys are strings
		if err := do(name); err != nil {
			return err
		}
	}
	return shut(decoder)
}

// eachElement calls do for the elements of an array; null is an empty array.
func eachElement(decoder *json.Decoder, do func(json.RawMessage) error) error {
	if done, err := open(decoder, '['); done || err != nil {
		return err
	}
	for decoder.More() {
		var piece json.RawMessage
		if err := decoder.Decode(&piece); err != nil {
			return err
		}
		if len(piece) > maxPieceBytes {
			return errTooLarge
		}
		if err := do(piece); err != nil {
			return err
		}
	}
	return shut(decoder)
}

// open reads the beginning of an array or object, or null, which is the whole value then.
func open(decoder *json.Decoder, want json.Delim) (null bool, err error) {
	token, err := decoder.Token()
	switch {
	case err != nil:
		return false, err
	case token == nil:
		return true, nil
	case token != want:
		return false, fmt.Errorf("must begin with %s", want)
	}
	return false, nil
}

func shut(decoder *json.Decoder) error {
	_, err := decoder.Token()
	return err
}

// limited fails once more than left bytes have been read: a truncated file must not be accepted as a whole one.
type limited struct {
	from io.Reader
	left int
}

// Read implements io.Reader.
func (l *limited) Read(into []byte) (int, error) {
	n, err := l.from.Read(into)
	l.left -= n
	if l.left < 0 {
		return 0, errTooLarge
	}
	return n, err
}
