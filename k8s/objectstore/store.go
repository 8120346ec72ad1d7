package objectstore

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path"
	"strings"
	"time"

	"gocloud.dev/blob"
)

// RequestTimeout limits one file's transfer, and one request to find a bucket.
const RequestTimeout = 20 * time.Second

// Store is the part of a bucket that belongs to one BackupStorageLocation.
type Store struct {
	bucket *blob.Bucket
	prefix string
	// CodeOf, if set, returns the error code of the object store's answer that a driver's error holds; it must be fit to show.
	CodeOf func(error) string
	// BeforeWrite, if set, gives a written file the properties that the location's configuration asks for.
	BeforeWrite func(as func(any) bool) error
	// onClose are called by Close.
	onClose []func()
}

// NewStore returns the part of a bucket under a prefix. The store closes the bucket.
func NewStore(bucket *blob.Bucket, prefix string) *Store {
	return &Store{bucket: bucket, prefix: strings.Trim(prefix, "/")}
}

// failed replaces an error of the driver by one with words that may be shown.
func (s *Store) failed(action string, err error) error {
	var code string
	if s.CodeOf != nil {
		code = s.CodeOf(err)
	}
	return Failed(action, err, code)
}

// OnClose adds a function that Close calls.
func (s *Store) OnClose(do func()) { s.onClose = append(s.onClose, do) }

// Close releases what the store holds.
func (s *Store) Close() error {
	defer func() {
		for _, do := range s.onClose {
			do()
		}
	}()
	if err := s.bucket.Close(); err != nil {
		return s.failed("close the bucket", err)
	}
	return nil
}

// readJSON has decode read the JSON of a gzipped file, of at most limit bytes unpacked.
func (s *Store) readJSON(ctx context.Context, key string, limit int, decode func(*json.Decoder) error) error {
	action := "read " + key
	ctx, cancel := context.WithTimeout(ctx, RequestTimeout)
	defer cancel()
	reader, err := s.bucket.NewReader(ctx, path.Join(s.prefix, key), nil)
	if err != nil {
		return s.failed(action, err)
	}
	defer reader.Close()
	packed, err := io.ReadAll(&limited{from: reader, left: maxFileBytes})
	if err == nil {
		err = unpack(bytes.NewReader(packed), limit, decode)
	} else if !errors.Is(err, errTooLarge) {
		return s.failed(action, err)
	}
	switch {
	case errors.Is(err, errTooLarge):
		return unusable(action, "it is larger than what is read of such files: %d MiB packed, %d MiB unpacked, "+
			"%d objects or %d messages", maxFileBytes>>20, limit>>20, maxKept, maxLines)
	case err != nil:
		return unusable(action, "it is not the gzipped JSON that Velero writes")
	}
	return nil
}

// writeJSON replaces a file. It is served as it is, without Content-Encoding: Velero's clients unpack it themselves.
func (s *Store) writeJSON(ctx context.Context, key string, value any) error {
	action := "write " + key
	var packed bytes.Buffer
	writer := gzip.NewWriter(&packed)
	if err := json.NewEncoder(writer).Encode(value); err != nil {
		return fmt.Errorf("%s: %w", action, err)
	}
	if err := writer.Close(); err != nil {
		return fmt.Errorf("%s: %w", action, err)
	}
	ctx, cancel := context.WithTimeout(ctx, RequestTimeout)
	defer cancel()
	err := s.bucket.WriteAll(ctx, path.Join(s.prefix, key), packed.Bytes(), &blob.WriterOptions{
		ContentType: "application/octet-stream", BeforeWrite: s.BeforeWrite,
	})
	if err != nil {
		return s.failed(action, err)
	}
	return nil
}
