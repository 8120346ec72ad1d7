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

const (
	// maxFileBytes and maxJSONBytes limit a file as it lies in the bucket and as it is unpacked: a line per object of a
	// backup of a million objects is less.
	maxFileBytes = 16 << 20
	maxJSONBytes = 96 << 20
	// requestTimeout limits one file's transfer.
	requestTimeout = 20 * time.Second
)

// Store is the part of a bucket that belongs to one BackupStorageLocation.
type Store struct {
	bucket *blob.Bucket
	prefix string
	// beforeWrite, if set, gives what is written the properties that the location's configuration asks for.
	beforeWrite func(as func(any) bool) error
}

// NewStore returns the part of a bucket under a prefix. The store closes the bucket.
func NewStore(bucket *blob.Bucket, prefix string) *Store {
	return &Store{bucket: bucket, prefix: strings.Trim(prefix, "/")}
}

// Close releases what the store holds.
func (s *Store) Close() error {
	if err := s.bucket.Close(); err != nil {
		return failed("close the bucket", err)
	}
	return nil
}

// readJSON decodes a gzipped JSON file of at most the sizes above.
func (s *Store) readJSON(ctx context.Context, key string, into any) error {
	action := "read " + key
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	reader, err := s.bucket.NewReader(ctx, path.Join(s.prefix, key), nil)
	if err != nil {
		return failed(action, err)
	}
	defer reader.Close()
	packed, err := io.ReadAll(&limited{from: reader, left: maxFileBytes})
	if err == nil {
		err = decode(packed, into)
	} else if !errors.Is(err, errTooLarge) {
		return failed(action, err)
	}
	switch {
	case errors.Is(err, errTooLarge):
		return unusable(action, "it is larger than %d MiB packed or %d MiB unpacked", maxFileBytes>>20, maxJSONBytes>>20)
	case err != nil:
		return unusable(action, "it is not the gzipped JSON that Velero writes")
	}
	return nil
}

func decode(packed []byte, into any) error {
	unpacked, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return err
	}
	decoder := json.NewDecoder(&limited{from: unpacked, left: maxJSONBytes})
	if err := decoder.Decode(into); err != nil {
		return err
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return errors.Join(errors.New("more than one value"), err)
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
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	err := s.bucket.WriteAll(ctx, path.Join(s.prefix, key), packed.Bytes(), &blob.WriterOptions{
		ContentType: "application/octet-stream", BeforeWrite: s.beforeWrite,
	})
	if err != nil {
		return failed(action, err)
	}
	return nil
}

var errTooLarge = errors.New("too large")

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
