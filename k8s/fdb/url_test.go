package fdb_test

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"holdfast.dev/holdfast/k8s/fdb"
)

func TestAURLIsReadAndWritten(t *testing.T) {
	for title, test := range map[string]struct {
		url  string
		want fdb.Destination
	}{
		"all there is": {
			"blobstore://lab@127.0.0.1:7070/team/orders-2026-01-02T03-04-05Z?bucket=fdb-backups&region=us-east-1&sc=0",
			fdb.Destination{
				Account: "lab", Host: "127.0.0.1", Port: "7070", Bucket: "fdb-backups", Path: "team/orders-2026-01-02T03-04-05Z",
				Parameters: []string{"region=us-east-1", "sc=0"},
			},
		},
		"as little as there can be": {
			"blobstore://lab@h/p?bucket=bbb", fdb.Destination{Account: "lab", Host: "h", Bucket: "bbb", Path: "p"},
		},
		"an account without a name": {
			"blobstore://@h:7070/p?bucket=bbb", fdb.Destination{Host: "h", Port: "7070", Bucket: "bbb", Path: "p"},
		},
		"parameters of a version that we do not know": {
			"blobstore://lab@h/p?bucket=bbb&brand_new=1",
			fdb.Destination{Account: "lab", Host: "h", Bucket: "bbb", Path: "p", Parameters: []string{"brand_new=1"}},
		},
	} {
		t.Run(title, func(t *testing.T) {
			d, err := fdb.ParseURL(test.url)
			require.NoError(t, err)
			assert.Equal(t, test.want, d)
			assert.Equal(t, test.url, d.URL())
		})
	}
	unsorted, err := fdb.ParseURL("blobstore://lab@h/p?sc=0&region=x&bucket=bbb")
	require.NoError(t, err)
	assert.Equal(t, "blobstore://lab@h/p?bucket=bbb&region=x&sc=0", unsorted.URL())
}

func TestOtherURLsAreRefusedWithoutQuotingThem(t *testing.T) {
	for title, url := range map[string]string{
		"nothing":                   "",
		"a folder":                  "file:///s3cr3t",
		"another kind":              "s3://s3cr3t/p?bucket=bbb",
		"a kind in capitals":        "BLOBSTORE://s3cr3t@h/p?bucket=bbb",
		"a secret":                  "blobstore://lab:s3cr3t@h/p?bucket=bbb",
		"a secret that is empty":    "blobstore://lab:@h/p?bucket=bbb",
		"no account":                "blobstore://s3cr3t/p?bucket=bbb",
		"a secret without a name":   "blobstore://:s3cr3t@h/p?bucket=bbb",
		"two hosts":                 "blobstore://lab@s3cr3t@h/p?bucket=bbb",
		"no host":                   "blobstore://lab@/s3cr3t?bucket=bbb",
		"a port that is none":       "blobstore://lab@h:s3cr3t/p?bucket=bbb",
		"no path":                   "blobstore://lab@h?bucket=bbb&x=s3cr3t",
		"an empty path":             "blobstore://lab@h/?bucket=bbb&x=s3cr3t",
		"a path with an escape":     "blobstore://lab@h/s3cr3t%2e?bucket=bbb",
		"a path upwards":            "blobstore://lab@h/s3cr3t/..?bucket=bbb",
		"no bucket":                 "blobstore://lab@h/p?region=s3cr3t",
		"no parameter":              "blobstore://lab@h/s3cr3t",
		"an empty parameter":        "blobstore://lab@h/s3cr3t?bucket=bbb&",
		"two buckets":               "blobstore://lab@h/s3cr3t?bucket=bbb&bucket=ccc",
		"a parameter without value": "blobstore://lab@h/s3cr3t?bucket=bbb&sc",
		"a header":                  "blobstore://lab@h/p?bucket=bbb&header=X-Key:s3cr3t",
		"a token":                   "blobstore://lab@h/p?bucket=bbb&security_token=s3cr3t",
		"another identity":          "blobstore://lab@h/s3cr3t?bucket=bbb&sdk_auth=1",
		"another identity, shorter": "blobstore://lab@h/s3cr3t?bucket=bbb&sa=1",
		"a space":                   "blobstore://lab@h/p?bucket=bbb&sc=0 -s3cr3t",
		"a line break":              "blobstore://lab@h/p?bucket=bbb\ns3cr3t",
		"more than a URL may be":    "blobstore://lab@h/p?bucket=bbb&x=" + strings.Repeat("s3cr3t", 1000),
	} {
		t.Run(title, func(t *testing.T) {
			d, err := fdb.ParseURL(url)
			require.Error(t, err)
			assert.Zero(t, d)
			assert.NotContains(t, err.Error(), "s3cr3t")
		})
	}
}

// TestAnyDestinationSurvivesItsURL draws destinations from everything that a spec may say.
func TestAnyDestinationSurvivesItsURL(t *testing.T) {
	random := rand.New(rand.NewPCG(4, 2))
	word := func(alphabet string, least, most int) string {
		text := make([]byte, least+random.IntN(most-least+1))
		for i := range text {
			text[i] = alphabet[random.IntN(len(alphabet))]
		}
		return string(text)
	}
	const letters = "abcdefghijklmnopqrstuvwxyzABCXYZ0123456789"
	for range 2000 {
		d := fdb.Destination{
			Account: word(letters+"._-+=~,!*$", 0, 40), Host: word(letters, 1, 9) + "." + word(letters, 1, 9),
			Bucket: word("abc0129", 3, 63), Path: word(letters+"_-", 1, 20),
		}
		if random.IntN(2) == 0 {
			d.Port = word("123456789", 1, 4)
		}
		for range random.IntN(3) {
			d.Path += "/" + word(letters+"_-", 1, 20)
		}
		for _, name := range []string{"region", "sc", "rt"}[:random.IntN(4)] {
			d.Parameters = append(d.Parameters, name+"="+word(letters+"_.,:%/-", 0, 10))
		}
		slices.Sort(d.Parameters)
		again, err := fdb.ParseURL(d.URL())
		require.NoError(t, err, d.URL())
		require.Equal(t, d, again)
		require.Equal(t, d.URL(), again.URL())
		require.Equal(t, d.URL(), fdb.Redact(d.URL(), nil), "there is nothing secret in it")
	}
}

// FuzzParseURL: what is accepted is written in one way only, and has no room for a secret.
func FuzzParseURL(f *testing.F) {
	f.Add("blobstore://lab@127.0.0.1:7070/a/b?bucket=fdb-backups&region=x")
	f.Add("blobstore://lab:s@h/p?bucket=bbb")
	f.Add("file:///x")
	f.Fuzz(func(t *testing.T, url string) {
		d, err := fdb.ParseURL(url)
		if err != nil {
			require.Zero(t, d)
			return
		}
		again, err := fdb.ParseURL(d.URL())
		require.NoError(t, err)
		require.Equal(t, d, again)
		require.True(t, d.SamePlace(again))
		require.NotContains(t, d.Account, ":")
		require.Equal(t, d.URL(), fdb.Redact(d.URL(), nil))
	})
}
