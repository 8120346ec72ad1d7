package env

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
)

// Account is somebody the S3 server knows besides root, with a bucket that only it and root may use.
type Account struct {
	AccessKey string
	SecretKey string
	Bucket    string
	Dir       string // the bucket's folder on disk: an object is a file, its key the path
}

// CredentialsFile returns the account's keys as the credentials file of AWS, the form in which Velero wants them.
func (a Account) CredentialsFile() []byte {
	return fmt.Appendf(nil, "[default]\naws_access_key_id=%s\naws_secret_access_key=%s\n", a.AccessKey, a.SecretKey)
}

// CreateAccount makes an account and its bucket, both of that name, which must be one that S3 allows for a bucket.
func (e *Env) CreateAccount(ctx context.Context, name string) (Account, error) {
	account := Account{AccessKey: name, SecretKey: randomToken(), Bucket: name, Dir: e.path("data", "s3", name)}
	if err := e.askS3(ctx, "/create-user", nil, account.user()); err != nil {
		return Account{}, fmt.Errorf("create S3 account %s: %w", name, err)
	}
	owner := http.Header{"X-Vgw-Owner": {account.AccessKey}}
	if err := e.askS3(ctx, "/"+url.PathEscape(account.Bucket)+"/create", owner, nil); err != nil {
		undone := e.askS3(ctx, accountPath("/delete-user", account), nil, nil)
		return Account{}, fmt.Errorf("create the bucket of S3 account %s: %w", name, errors.Join(err, undone))
	}
	return account, nil
}

// RotateAccount gives the account a new secret key. When it returns, the server refuses the old one.
func (e *Env) RotateAccount(ctx context.Context, account Account) (Account, error) {
	account.SecretKey = randomToken()
	if err := e.askS3(ctx, accountPath("/update-user", account), nil, account.user()); err != nil {
		return Account{}, fmt.Errorf("give S3 account %s a new key: %w", account.AccessKey, err)
	}
	return account, nil
}

func accountPath(path string, account Account) string {
	return path + "?" + url.Values{"access": {account.AccessKey}}.Encode()
}

// s3User is an account as the S3 server's administration reads it.
type s3User struct {
	XMLName xml.Name `xml:"Account"`
	Access  string
	Secret  string
	Role    string
}

// user has the role that may use buckets, but not make any.
func (a Account) user() *s3User {
	return &s3User{Access: a.AccessKey, Secret: a.SecretKey, Role: "user"}
}

// askS3 has the S3 server's administration do something as root. The server's own command line would do it too, but takes
// secrets as arguments only.
func (e *Env) askS3(ctx context.Context, path string, header http.Header, content *s3User) error {
	if !e.hasS3() {
		return errors.New("this stack has no S3 server")
	}
	var body []byte
	if content != nil {
		var err error
		if body, err = xml.Marshal(content); err != nil {
			return err
		}
	}
	answer, err := e.storage.send(ctx, e.storage.root(), s3Request{method: http.MethodPatch, path: path, header: header, body: body})
	if err != nil {
		return err
	}
	return answer.err()
}

// root may do everything; its bucket is the default one.
func (s Storage) root() Account {
	return Account{AccessKey: s.AccessKey, SecretKey: s.SecretKey, Bucket: s.Bucket, Dir: s.Dir}
}

// s3Request is a request to the S3 server.
type s3Request struct {
	method string
	path   string // escaped, with the query
	header http.Header
	body   []byte
}

// s3Answer is what the S3 server says; in the case of an error with its code.
type s3Answer struct {
	status  int
	header  http.Header
	body    []byte
	code    string
	message string
}

func (a s3Answer) err() error {
	if a.status < http.StatusBadRequest {
		return nil
	}
	return fmt.Errorf("the S3 server answers %d %s: %s", a.status, a.code, a.message)
}

// send signs a request with the account's keys and sends it.
func (s Storage) send(ctx context.Context, account Account, r s3Request) (s3Answer, error) {
	request, err := http.NewRequestWithContext(ctx, r.method, s.Endpoint+r.path, bytes.NewReader(r.body))
	if err != nil {
		return s3Answer{}, err
	}
	for key, values := range r.header {
		request.Header[key] = values
	}
	sum := sha256.Sum256(r.body)
	hash := hex.EncodeToString(sum[:])
	request.Header.Set("X-Amz-Content-Sha256", hash)
	keys := aws.Credentials{AccessKeyID: account.AccessKey, SecretAccessKey: account.SecretKey}
	unescaped := func(o *v4.SignerOptions) { o.DisableURIPathEscaping = true } // as S3 wants it
	if err := v4.NewSigner().SignHTTP(ctx, keys, request, hash, "s3", s.Region, time.Now(), unescaped); err != nil {
		return s3Answer{}, fmt.Errorf("sign %s %s: %w", r.method, r.path, err)
	}
	response, err := probeClient.Do(request)
	if err != nil {
		return s3Answer{}, err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return s3Answer{}, fmt.Errorf("read the answer to %s %s: %w", r.method, r.path, err)
	}
	answer := s3Answer{status: response.StatusCode, header: response.Header, body: body}
	if answer.status >= http.StatusBadRequest {
		var said struct{ Code, Message string }
		_ = xml.Unmarshal(body, &said) // the answer to HEAD, or of something else than S3, has none
		answer.code, answer.message = said.Code, said.Message
	}
	return answer, nil
}
