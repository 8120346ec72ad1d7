package env

import (
	"bytes"
	"context"
	"encoding/xml"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"holdfast.dev/holdfast/test/tools"
)

// startS3Alone starts the S3 server and nothing else.
func startS3Alone(t *testing.T) *Env {
	t.Helper()
	if testing.Short() {
		t.Skip("starts a real component")
	}
	ctx, cancel := context.WithTimeout(t.Context(), 15*time.Minute) // the first build is in it
	defer cancel()
	e, err := prepare(Options{})
	require.NoError(t, err)
	t.Cleanup(e.Stop)
	e.bin, err = tools.Build(ctx, []string{tools.VersityGW}, e.progress)
	require.NoError(t, err)
	require.NoError(t, e.startS3(ctx))
	e.ReportFailure(t)
	return e
}

func newAccount(t *testing.T, e *Env, name string) Account {
	t.Helper()
	account, err := e.CreateAccount(t.Context(), name)
	require.NoError(t, err)
	return account
}

// ask sends a request as the account and returns the answer, whatever it is.
func ask(t *testing.T, e *Env, as Account, method, path, body string) s3Answer {
	t.Helper()
	answer, err := e.storage.send(t.Context(), as, s3Request{method: method, path: path, body: []byte(body)})
	require.NoError(t, err)
	return answer
}

func succeed(t *testing.T, e *Env, as Account, method, path, body string) s3Answer {
	t.Helper()
	answer := ask(t, e, as, method, path, body)
	require.NoError(t, answer.err(), "%s %s", method, path)
	return answer
}

func TestAccountsOfTheS3Server(t *testing.T) {
	e := startS3Alone(t)
	red, blue := newAccount(t, e, "team-red"), newAccount(t, e, "team-blue")
	require.NotEqual(t, red.SecretKey, blue.SecretKey)

	t.Run("an account uses its own bucket", func(t *testing.T) { usesOwnBucket(t, e, red) })
	t.Run("an account uploads in parts", func(t *testing.T) { uploadsInParts(t, e, red) })
	t.Run("an account is refused at every bucket not its own", func(t *testing.T) { refusedElsewhere(t, e, red, blue) })
	t.Run("root may use every bucket", func(t *testing.T) {
		root := e.storage.root()
		for _, bucket := range []string{e.storage.Bucket, red.Bucket, blue.Bucket} {
			succeed(t, e, root, http.MethodPut, "/"+bucket+"/by-root", "content")
			succeed(t, e, root, http.MethodGet, "/"+bucket+"?list-type=2", "")
			succeed(t, e, root, http.MethodDelete, "/"+bucket+"/by-root", "")
		}
	})
	t.Run("a name is given once", func(t *testing.T) {
		for _, name := range []string{red.AccessKey, e.storage.AccessKey} {
			_, err := e.CreateAccount(t.Context(), name)
			require.ErrorContains(t, err, "create S3 account "+name+": the S3 server answers 409 XAdminUserExists")
		}
	})
	t.Run("a name that no bucket can have is refused", func(t *testing.T) {
		for range 2 { // nothing is left of the first attempt
			_, err := e.CreateAccount(t.Context(), "Team_Red")
			require.ErrorContains(t, err, "create the bucket of S3 account Team_Red: the S3 server answers 400 InvalidBucketName")
		}
	})
	t.Run("after a rotation only the new key is good", func(t *testing.T) { red = rotates(t, e, red, blue) })
	t.Run("accounts outlive the server's restart", func(t *testing.T) {
		require.NoError(t, e.Component(S3).Kill())
		require.NoError(t, e.Component(S3).Restart(t.Context()))
		usesOwnBucket(t, e, red)
		refusedElsewhere(t, e, red, blue)
	})
	t.Run("no secret key is in the log or in the arguments", func(t *testing.T) {
		log, err := os.ReadFile(e.Component(S3).LogPath())
		require.NoError(t, err)
		arguments := strings.Join(e.Component(S3).command.args, " ")
		for _, secret := range []string{red.SecretKey, blue.SecretKey, e.storage.SecretKey} {
			assert.False(t, bytes.Contains(log, []byte(secret)), "log")
			assert.NotContains(t, arguments, secret)
		}
		assert.Contains(t, string(log), "/team-red", "the log does hold the requests")
	})
}

func usesOwnBucket(t *testing.T, e *Env, account Account) {
	t.Helper()
	base := "/" + account.Bucket
	succeed(t, e, account, http.MethodHead, base, "")
	for _, key := range []string{"team/backups/one/one.tar.gz", "team/backups/two/two.tar.gz", "other/three"} {
		succeed(t, e, account, http.MethodPut, base+"/"+key, "content of "+key)
	}
	require.Equal(t, "content of other/three", string(succeed(t, e, account, http.MethodGet, base+"/other/three", "").body))

	var list struct {
		CommonPrefixes []struct{ Prefix string }
		Contents       []struct{ Key string }
	}
	answer := succeed(t, e, account, http.MethodGet, base+"?list-type=2&prefix=team%2Fbackups%2F&delimiter=%2F", "")
	require.NoError(t, xml.Unmarshal(answer.body, &list))
	require.Empty(t, list.Contents)
	require.Len(t, list.CommonPrefixes, 2)
	require.Equal(t, "team/backups/one/", list.CommonPrefixes[0].Prefix)

	require.Equal(t, []Object{
		{Key: "team/backups/one/one.tar.gz", Size: 38}, {Key: "team/backups/two/two.tar.gz", Size: 38},
	}, objectsOf(t, e, account, "team/backups"))
	require.FileExists(t, filepath.Join(account.Dir, "other", "three"))

	for _, object := range objectsOf(t, e, account, "") {
		succeed(t, e, account, http.MethodDelete, base+"/"+object.Key, "")
	}
	require.Empty(t, objectsOf(t, e, account, ""))
}

func objectsOf(t *testing.T, e *Env, account Account, prefix string) []Object {
	t.Helper()
	objects, err := e.BucketObjects(account, prefix)
	require.NoError(t, err)
	return objects
}

func uploadsInParts(t *testing.T, e *Env, account Account) {
	path := "/" + account.Bucket + "/large"
	var started struct {
		UploadID string `xml:"UploadId"`
	}
	require.NoError(t, xml.Unmarshal(succeed(t, e, account, http.MethodPost, path+"?uploads=", "").body, &started))
	parts := []string{strings.Repeat("x", 5<<20), "the end"} // S3 wants at least 5 MiB of every part but the last
	complete := "<CompleteMultipartUpload>"
	for i, part := range parts {
		query := fmt.Sprintf("?partNumber=%d&uploadId=%s", i+1, started.UploadID)
		tag := succeed(t, e, account, http.MethodPut, path+query, part).header.Get("ETag")
		complete += fmt.Sprintf("<Part><PartNumber>%d</PartNumber><ETag>%s</ETag></Part>", i+1, tag)
	}
	succeed(t, e, account, http.MethodPost, path+"?uploadId="+started.UploadID, complete+"</CompleteMultipartUpload>")
	require.Equal(t, []Object{{Key: "large", Size: 5<<20 + 7}}, objectsOf(t, e, account, ""))
	succeed(t, e, account, http.MethodDelete, path, "")
}

func refusedElsewhere(t *testing.T, e *Env, account, owner Account) {
	t.Helper()
	succeed(t, e, owner, http.MethodPut, "/"+owner.Bucket+"/kept", "content")
	refused := func(method, path string) {
		t.Helper()
		answer := ask(t, e, account, method, path, "")
		assert.Equal(t, http.StatusForbidden, answer.status, "%s %s", method, path)
		if method != http.MethodHead { // its answer has no body
			assert.Contains(t, answer.code, "AccessDenied", "%s %s", method, path)
		}
	}
	for _, bucket := range []string{owner.Bucket, e.storage.Bucket} {
		base := "/" + bucket
		refused(http.MethodHead, base)
		refused(http.MethodGet, base+"?list-type=2")
		refused(http.MethodGet, base+"/kept")
		refused(http.MethodPut, base+"/mine")
		refused(http.MethodDelete, base+"/kept")
		refused(http.MethodPost, base+"/mine?uploads=")
		refused(http.MethodPut, base+"?acl=")
	}
	refused(http.MethodPut, "/a-bucket-more")
	refused(http.MethodPatch, "/list-users")
	require.Equal(t, []Object{{Key: "kept", Size: 7}}, objectsOf(t, e, owner, ""))
}

func rotates(t *testing.T, e *Env, account, other Account) Account {
	list := "/" + account.Bucket + "?list-type=2"
	succeed(t, e, account, http.MethodGet, list, "") // so that a cache would hold the old key
	rotated, err := e.RotateAccount(t.Context(), account)
	require.NoError(t, err)
	require.NotEqual(t, account.SecretKey, rotated.SecretKey)

	answer := ask(t, e, account, http.MethodGet, list, "")
	require.Equal(t, http.StatusForbidden, answer.status)
	require.Equal(t, "SignatureDoesNotMatch", answer.code)
	succeed(t, e, rotated, http.MethodGet, list, "")
	succeed(t, e, other, http.MethodGet, "/"+other.Bucket+"?list-type=2", "")

	_, err = e.RotateAccount(t.Context(), Account{AccessKey: "nobody"})
	require.ErrorContains(t, err, "give S3 account nobody a new key: the S3 server answers 404 XAdminUserNotFound")
	return rotated
}

func TestCredentialsFileOfAnAccount(t *testing.T) {
	account := Account{AccessKey: "team", SecretKey: "secret"}
	require.Equal(t, "[default]\naws_access_key_id=team\naws_secret_access_key=secret\n", string(account.CredentialsFile()))
}

func TestAccountInAStackWithoutS3(t *testing.T) {
	_, err := (&Env{options: Options{Without: []string{S3}}}).CreateAccount(t.Context(), "team")
	require.EqualError(t, err, "create S3 account team: this stack has no S3 server")
}
