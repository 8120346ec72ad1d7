package clouds

import (
	"context"
	"net/http"
	"net/url"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/feature/s3/transfermanager"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"gocloud.dev/blob/s3blob"

	"holdfast.dev/holdfast/k8s/objectstore"
)

// defaultRegion is the region for servers other than Amazon's if none is configured, and the one in which Amazon is queried for
// a bucket's region.
const defaultRegion = "us-east-1"

// openS3 reads the configuration as Velero's plugin for AWS does, except settings that need an identity of the machine.
func openS3(ctx context.Context, a *access) (*objectstore.Store, error) {
	profile, problem := awsProfile(string(a.credential), a.config["profile"])
	if problem != "" {
		return nil, unusable(a.action, "its credential: %s", problem)
	}
	for _, key := range []string{"customerKeyEncryptionFile", "customerKeyEncryptionSecret"} {
		if a.config[key] != "" {
			return nil, unusable(a.action, "its files are encrypted with a key that only Velero has (config.%s)", key)
		}
	}
	pathStyle, err := flag(a.action, a.config, "s3ForcePathStyle")
	if err != nil {
		return nil, err
	}
	options := s3.Options{
		Region:       firstOf(a.config["region"], profile.region),
		Credentials:  credentials.NewStaticCredentialsProvider(profile.id, profile.secret, profile.token),
		HTTPClient:   &http.Client{Transport: a.transport, CheckRedirect: noRedirect},
		UsePathStyle: pathStyle,
		// Not every server knows the checksums that the SDK adds by default.
		RequestChecksumCalculation: aws.RequestChecksumCalculationWhenRequired,
		ResponseChecksumValidation: aws.ResponseChecksumValidationWhenRequired,
	}
	if address := a.config["s3Url"]; address != "" {
		parsed, err := url.Parse(address)
		if err != nil || parsed.Host == "" || (parsed.Scheme != "http" && parsed.Scheme != "https") {
			return nil, unusable(a.action, "config.s3Url must be a URL that begins with http:// or https://")
		}
		options.BaseEndpoint = aws.String(address)
		options.Region = firstOf(options.Region, defaultRegion)
	}
	if options.Region == "" {
		if options.Region, err = regionOf(ctx, a, options); err != nil {
			return nil, err
		}
	}
	bucket, err := s3blob.OpenBucket(ctx, s3.New(options), a.bucket, encryption(a.config))
	if err != nil {
		return nil, failed(a.action, err)
	}
	store := a.store(bucket)
	if tags := a.config["tagging"]; tags != "" {
		store.BeforeWrite = func(as func(any) bool) error {
			var upload *transfermanager.UploadObjectInput
			if as(&upload) {
				upload.Tagging = aws.String(tags)
			}
			return nil
		}
	}
	return store, nil
}

// noRedirect: a server must not send the request elsewhere.
func noRedirect(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

// regionOf queries Amazon for a bucket's region.
func regionOf(ctx context.Context, a *access, options s3.Options) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, objectstore.RequestTimeout)
	defer cancel()
	options.Region = defaultRegion
	head, err := s3.New(options).HeadBucket(ctx, &s3.HeadBucketInput{Bucket: aws.String(a.bucket)})
	if err == nil {
		return firstOf(aws.ToString(head.BucketRegion), defaultRegion), nil
	}
	if region := regionIn(err); region != "" {
		return region, nil
	}
	return "", failed(a.action, err)
}

func encryption(config map[string]string) *s3blob.Options {
	options := &s3blob.Options{RequestChecksumCalculation: aws.RequestChecksumCalculationWhenRequired}
	switch {
	case config["kmsKeyId"] != "":
		options.EncryptionType, options.KMSEncryptionID = types.ServerSideEncryptionAwsKms, config["kmsKeyId"]
	case config["serverSideEncryption"] != "":
		options.EncryptionType = types.ServerSideEncryption(config["serverSideEncryption"])
	}
	return options
}

func firstOf(texts ...string) string {
	for _, text := range texts {
		if text = strings.TrimSpace(text); text != "" {
			return text
		}
	}
	return ""
}
