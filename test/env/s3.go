package env

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"holdfast.dev/holdfast/test/tools"
)

// Bucket and prefix of the default backup storage location.
const (
	bucket       = "holdfast"
	bucketPrefix = "velero"
)

// Storage says how to reach the S3 server.
type Storage struct {
	Endpoint  string // URL; buckets are addressed by path
	Region    string
	AccessKey string
	SecretKey string
	Bucket    string // bucket of the default backup storage location
	Prefix    string // where in it Velero writes
	Dir       string // the bucket's folder on disk: an object is a file, its key the path
}

// Object is one object in the bucket.
type Object struct {
	Key  string
	Size int64
}

// Storage returns the S3 server's data; it is zero in a stack without S3.
func (e *Env) Storage() Storage { return e.storage }

func (e *Env) hasS3() bool { return !e.without(S3) }

func (e *Env) startS3(ctx context.Context) error {
	if !e.hasS3() {
		return nil
	}
	if other := e.options.Beside; other != nil {
		e.storage = other.storage
		e.storage.Prefix = bucketPrefix + "-" + e.options.ClusterID
		return nil
	}
	port, err := freePorts.next()
	if err != nil {
		return err
	}
	e.storage = Storage{
		Endpoint: "http://" + address(port), Region: "us-east-1", AccessKey: "holdfast", SecretKey: randomToken(),
		Bucket: bucket, Prefix: bucketPrefix, Dir: e.path("data", "s3", bucket),
	}
	if err := e.CreateBucket(bucket); err != nil {
		return err
	}
	attributes, accounts := e.path("data", "object-attributes"), e.path("data", "s3-accounts")
	for _, folder := range []string{attributes, accounts} {
		if err := os.MkdirAll(folder, 0o700); err != nil {
			return fmt.Errorf("make a folder for the S3 server: %w", err)
		}
	}
	_, err = e.launch(ctx, command{
		name: S3, kind: S3, path: e.bin[tools.VersityGW],
		args: []string{
			"--port", address(port), "--region", e.storage.Region, "--health", "/healthz",
			// With a cache, a request under way could bring an account's old key back.
			"--iam-dir", accounts, "--iam-cache-disable",
			// Object attributes go to a folder of their own: not every temporary folder can hold extended attributes.
			"posix", "--sidecar", attributes, filepath.Dir(e.storage.Dir),
		},
		env:   []string{"ROOT_ACCESS_KEY=" + e.storage.AccessKey, "ROOT_SECRET_KEY=" + e.storage.SecretKey},
		ready: httpReady(e.storage.Endpoint+"/healthz", ""),
	})
	return err
}

// CreateBucket makes a further bucket, which root alone may use.
func (e *Env) CreateBucket(name string) error {
	if err := os.MkdirAll(e.path("data", "s3", name), 0o755); err != nil {
		return fmt.Errorf("make bucket %s: %w", name, err)
	}
	return nil
}

// Objects lists what lies in the default bucket under a prefix of whole path elements, by key.
func (e *Env) Objects(prefix string) ([]Object, error) {
	return listObjects(e.storage.Bucket, e.storage.Dir, prefix)
}

// BucketObjects is Objects for an account's own bucket.
func (e *Env) BucketObjects(account Account, prefix string) ([]Object, error) {
	return listObjects(account.Bucket, account.Dir, prefix)
}

// listObjects reads a bucket's folder, so that it also tells while the server is paused.
func listObjects(bucket, dir, prefix string) ([]Object, error) {
	var objects []Object
	start := filepath.Join(dir, filepath.FromSlash(prefix))
	err := filepath.WalkDir(start, func(path string, entry fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil // never written, or deleted while we look
		}
		if err != nil || !entry.Type().IsRegular() {
			return err
		}
		key, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		if strings.HasPrefix(key, ".") {
			return nil // the server's own files
		}
		info, err := entry.Info()
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		objects = append(objects, Object{Key: filepath.ToSlash(key), Size: info.Size()})
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("list bucket %s: %w", bucket, err)
	}
	return objects, nil
}
