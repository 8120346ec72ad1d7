package container

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
)

// bucket is a container in an S3 server: an entry of the index `backups/<name>` and objects below `data/<name>/`. What gets no
// answer is asked again until the context ends; so it is when there are no credentials, which the real tools look for with every
// connection (fdbclient/S3BlobStore.actor.cpp, connect_impl and doRequest_impl). What the server refuses fails at once: 401 as
// bad credentials, 403 and all else as a failed request.
type bucket struct {
	url    *URL
	files  []string
	bucket *string
	client *s3.Client
}

func openS3(u *URL, files []string) Store {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.Proxy = nil
	b := &bucket{url: u, files: files, bucket: aws.String(u.Blob.Bucket)}
	b.client = s3.New(s3.Options{
		Region:                     u.Blob.Region,
		Credentials:                aws.CredentialsProviderFunc(b.credentials),
		BaseEndpoint:               aws.String(u.Blob.Endpoint()),
		UsePathStyle:               true,
		HTTPClient:                 &http.Client{Transport: transport},
		Retryer:                    aws.NopRetryer{},
		RequestChecksumCalculation: aws.RequestChecksumCalculationWhenRequired,
		ResponseChecksumValidation: aws.ResponseChecksumValidationWhenRequired,
	})
	return b
}

// credentials reads the files again, so that a key that was replaced is used at once.
func (b *bucket) credentials(context.Context) (aws.Credentials, error) {
	found, err := b.url.Blob.lookUp(b.files)
	return aws.Credentials{AccessKeyID: found.APIKey, SecretAccessKey: found.Secret, SessionToken: found.Token}, err
}

// ask repeats a request until the server answers, and gives the answer the tools' name.
func (b *bucket) ask(ctx context.Context, request func() error) error {
	for wait := 50 * time.Millisecond; ; wait = min(2*wait, time.Second) {
		err := request()
		if err == nil {
			return nil
		}
		code := 0 // no answer
		var answer *awshttp.ResponseError
		if errors.As(err, &answer) {
			code = answer.HTTPStatusCode()
		}
		switch {
		case code == http.StatusNotFound:
			return ErrNotFound
		case code == http.StatusUnauthorized:
			return ErrAuth
		case code >= http.StatusMultipleChoices && code < http.StatusInternalServerError:
			return ErrRequest
		}
		select {
		case <-ctx.Done():
			for _, missing := range []error{ErrAuthMissing, ErrAuthUnreadable} {
				if errors.Is(err, missing) {
					return missing
				}
			}
			return ctx.Err()
		case <-time.After(wait):
		}
	}
}

func (b *bucket) index() *string          { return aws.String("backups/" + b.url.Path) }
func (b *bucket) key(name string) *string { return aws.String("data/" + b.url.Path + "/" + name) }
func (b *bucket) has(ctx context.Context, key *string) (bool, error) {
	err := b.ask(ctx, func() error {
		_, err := b.client.HeadObject(ctx, &s3.HeadObjectInput{Bucket: b.bucket, Key: key})
		return err
	})
	if errors.Is(err, ErrNotFound) {
		return false, nil
	}
	return err == nil, err
}

// Create makes the bucket when it is missing, and the entry of the index. A bucket is asked for in the URL's region by name: a
// server in us-east-1 refuses that, since its region has none in such a request.
func (b *bucket) Create(ctx context.Context) error {
	err := b.ask(ctx, func() error {
		_, err := b.client.HeadBucket(ctx, &s3.HeadBucketInput{Bucket: b.bucket})
		return err
	})
	if errors.Is(err, ErrNotFound) {
		err = b.ask(ctx, func() error {
			_, err := b.client.CreateBucket(ctx, &s3.CreateBucketInput{
				Bucket: b.bucket, CreateBucketConfiguration: b.location(),
			})
			return err
		})
	}
	if err != nil {
		return err
	}
	known, err := b.has(ctx, b.index())
	if known || err != nil {
		return err
	}
	return b.put(ctx, b.index(), nil)
}

func (b *bucket) location() *types.CreateBucketConfiguration {
	if b.url.Blob.Region == "" {
		return nil
	}
	return &types.CreateBucketConfiguration{LocationConstraint: types.BucketLocationConstraint(b.url.Blob.Region)}
}

func (b *bucket) Exists(ctx context.Context) (bool, error) { return b.has(ctx, b.index()) }

func (b *bucket) List(ctx context.Context, prefix string) ([]Object, error) {
	start := aws.ToString(b.key(prefix))
	found, err := b.list(ctx, start)
	for i := range found {
		found[i].Path = prefix + strings.TrimPrefix(found[i].Path, start)
	}
	if errors.Is(err, ErrNotFound) {
		return nil, nil
	}
	return found, err
}

func (b *bucket) list(ctx context.Context, start string) ([]Object, error) {
	var objects []Object
	pages := s3.NewListObjectsV2Paginator(b.client, &s3.ListObjectsV2Input{Bucket: b.bucket, Prefix: aws.String(start)})
	for pages.HasMorePages() {
		err := b.ask(ctx, func() error {
			page, err := pages.NextPage(ctx)
			if err != nil {
				return err
			}
			for _, object := range page.Contents {
				objects = append(objects, Object{Path: aws.ToString(object.Key), Size: aws.ToInt64(object.Size)})
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	slices.SortFunc(objects, func(a, b Object) int { return strings.Compare(a.Path, b.Path) })
	return objects, nil
}

func (b *bucket) Read(ctx context.Context, name string) ([]byte, error) {
	var content []byte
	err := b.ask(ctx, func() error {
		answer, err := b.client.GetObject(ctx, &s3.GetObjectInput{Bucket: b.bucket, Key: b.key(name)})
		if err != nil {
			return err
		}
		defer answer.Body.Close()
		content, err = io.ReadAll(answer.Body)
		return err
	})
	return content, err
}

func (b *bucket) Write(ctx context.Context, name string, content []byte) error {
	return b.put(ctx, b.key(name), content)
}

func (b *bucket) put(ctx context.Context, key *string, content []byte) error {
	return b.ask(ctx, func() error {
		_, err := b.client.PutObject(ctx, &s3.PutObjectInput{Bucket: b.bucket, Key: key, Body: bytes.NewReader(content)})
		return err
	})
}

func (b *bucket) drop(ctx context.Context, key *string) error {
	err := b.ask(ctx, func() error {
		_, err := b.client.DeleteObject(ctx, &s3.DeleteObjectInput{Bucket: b.bucket, Key: key})
		return err
	})
	if errors.Is(err, ErrNotFound) {
		return nil
	}
	return err
}

func (b *bucket) Delete(ctx context.Context, name string) error { return b.drop(ctx, b.key(name)) }

func (b *bucket) Remove(ctx context.Context) error { return b.drop(ctx, b.index()) }

func (b *bucket) Siblings(ctx context.Context) ([]string, error) {
	found, err := b.list(ctx, "backups/"+b.url.Path)
	if errors.Is(err, ErrNotFound) {
		return nil, nil
	}
	var urls []string
	for _, object := range found {
		urls = append(urls, b.url.WithPath(strings.TrimPrefix(object.Path, "backups/")))
	}
	return urls, err
}
