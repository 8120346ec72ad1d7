package objectstore

import (
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
)

// What a tenant's bucket holds the tenant may have written, so a file may be made to fill the memory of whoever reads it. A file
// is read piece by piece, what is not asked for is dropped at once, and there are limits to the rest: far beyond those of a
// namespace that Kubernetes can bear.
const (
	// maxFileBytes limits a file as it lies in the bucket.
	maxFileBytes = 16 << 20
	// maxListBytes and maxResultsBytes limit files as they are unpacked: of lists most is dropped, results are kept whole.
	maxListBytes    = 32 << 20
	maxResultsBytes = 8 << 20
	// maxPieceBytes limits one entry of a list.
	maxPieceBytes = 64 << 10
	// maxKept limits how many entries of a list are kept.
	maxKept = 200_000
	// maxVolumesBytes limits what is kept of a list of volumes, which has larger entries.
	maxVolumesBytes = 8 << 20
)

var errTooLarge = errors.New("too large")

// unpack has decode read the one JSON value of a gzipped file, unpacked to at most limit bytes.
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
		if done, err := open(decoder, '{'); done || err != nil {
			return err
		}
		kept := 0
		list := ResourceList{}
		for decoder.More() {
			kind, err := decoder.Token()
			if err != nil {
				return err
			}
			err = eachElement(decoder, func(piece json.RawMessage) error {
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
				list[kind.(string)] = append(list[kind.(string)], entry)
				return nil
			})
			if err != nil {
				return err
			}
		}
		*into = list
		return shut(decoder)
	}
}

// eachElement calls do for the elements of an array; null is an array without any.
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

// open reads the beginning of an array or object, or a null in its place, which is all there is then.
func open(decoder *json.Decoder, want json.Delim) (null bool, err error) {
	token, err := decoder.Token()
	switch {
	case err != nil:
		return false, err
	case token == nil:
		return true, nil
	case token != want:
		return false, fmt.Errorf("want %s", want)
	}
	return false, nil
}

func shut(decoder *json.Decoder) error {
	_, err := decoder.Token()
	return err
}

// limited fails once more than left bytes have been read: a file cut short must not pass for a whole one.
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
