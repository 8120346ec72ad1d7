package outage_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"gocloud.dev/blob"
	"gocloud.dev/blob/s3blob"
)

// bucket opens the default bucket, in which the tenants' locations are, too.
func (r *rig) bucket(ctx context.Context) (*blob.Bucket, error) {
	storage := r.stack.Storage()
	return s3blob.OpenBucket(ctx, s3.New(s3.Options{
		Region: storage.Region, BaseEndpoint: aws.String(storage.Endpoint), UsePathStyle: true,
		Credentials:                credentials.NewStaticCredentialsProvider(storage.AccessKey, storage.SecretKey, ""),
		RequestChecksumCalculation: aws.RequestChecksumCalculationWhenRequired,
	}), storage.Bucket, nil)
}

// putFile writes a file in the form in which Velero keeps it.
func (r *rig) putFile(key string, content any) error {
	var packed bytes.Buffer
	writer := gzip.NewWriter(&packed)
	if err := json.NewEncoder(writer).Encode(content); err != nil {
		return err
	}
	if err := writer.Close(); err != nil {
		return err
	}
	bucket, err := r.bucket(context.Background())
	if err != nil {
		return err
	}
	defer bucket.Close()
	return bucket.WriteAll(context.Background(), key, packed.Bytes(), nil)
}

// file reads back what putFile, Velero or Holdfast has written.
func (r *rig) file(key string) ([]byte, error) {
	bucket, err := r.bucket(context.Background())
	if err != nil {
		return nil, err
	}
	defer bucket.Close()
	packed, err := bucket.ReadAll(context.Background(), key)
	if err != nil {
		return nil, err
	}
	unpacked, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return nil, err
	}
	return io.ReadAll(unpacked)
}

// written is when a file was written, on the server's disk.
func (r *rig) written(key string) (time.Time, error) {
	info, err := os.Stat(filepath.Join(r.stack.Storage().Dir, filepath.FromSlash(key)))
	if err != nil {
		return time.Time{}, err
	}
	return info.ModTime(), nil
}
