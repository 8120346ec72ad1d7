package clouds

import (
	"context"
	"encoding/json"
	"net/http"

	"cloud.google.com/go/storage"
	"gocloud.dev/blob/gcsblob"
	"gocloud.dev/gcp"
	"golang.org/x/oauth2"
	"golang.org/x/oauth2/google"
	"google.golang.org/api/option"

	"holdfast.dev/holdfast/k8s/objectstore"
)

// gcsScope allows to read and write objects, and nothing else.
const gcsScope = storage.ScopeReadWrite

// openGCS opens a bucket with the key of a Google service account. Credentials of other types name files, programs or
// servers, which only Velero may use.
func openGCS(ctx context.Context, a *access) (*objectstore.Store, error) {
	if a.config["universeDomain"] != "" {
		return nil, unusable(a.action, "a cloud other than Google's public one can be used by Velero only (config.universeDomain)")
	}
	tokens, problem := googleTokens(context.WithValue(ctx, oauth2.HTTPClient, a.client()), a.credential, google.JWTTokenURL)
	if problem != "" {
		return nil, unusable(a.action, "its credential: %s", problem)
	}
	httpClient, err := gcp.NewHTTPClient(a.transport, tokens)
	if err != nil {
		return nil, failed(a.action, err)
	}
	httpClient.CheckRedirect = noRedirect
	options := &gcsblob.Options{}
	if endpoint := a.config["storeEndpoint"]; endpoint != "" {
		options.ClientOptions = append(options.ClientOptions, option.WithEndpoint(endpoint), storage.WithJSONReads())
	}
	bucket, err := gcsblob.OpenBucket(ctx, httpClient, a.bucket, options)
	if err != nil {
		return nil, failed(a.action, err)
	}
	store := a.store(bucket)
	if key := a.config["kmsKeyName"]; key != "" {
		store.BeforeWrite = func(as func(any) bool) error {
			var writer *storage.Writer
			if as(&writer) {
				writer.KMSKeyName = key
			}
			return nil
		}
	}
	return store, nil
}

func (a *access) client() *http.Client {
	return &http.Client{Transport: a.transport, CheckRedirect: noRedirect, Timeout: objectstore.RequestTimeout}
}

// googleTokens returns a source of tokens for a service account's key, always issued by Google whatever the key's file says.
func googleTokens(ctx context.Context, credential []byte, tokenURL string) (gcp.TokenSource, string) {
	const want = `it must be the JSON key of a Google service account ("type": "service_account")`
	var key struct {
		Type string `json:"type"`
	}
	if err := json.Unmarshal(credential, &key); err != nil || key.Type != "service_account" {
		return nil, want
	}
	config, err := google.JWTConfigFromJSON(credential, gcsScope)
	if err != nil {
		return nil, want
	}
	config.TokenURL = tokenURL
	return gcp.TokenSource(config.TokenSource(ctx)), ""
}
