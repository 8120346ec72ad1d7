package fdb_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"holdfast.dev/holdfast/k8s/fdb"
)

func TestSecretsAreRemovedFromTexts(t *testing.T) {
	for title, test := range map[string]struct {
		text    string
		secrets []string
		want    string
	}{
		"nothing secret": {"all is well at blobstore://lab@h:1/p?bucket=b", []string{"s3cr3t"}, "all is well at blobstore://lab@h:1/p?bucket=b"},
		"a secret":       {"it said s3cr3t, s3cr3t!", []string{"s3cr3t"}, "it said ***, ***!"},
		"one that begins with another, whatever the order": {"abcdef abc", []string{"abc", "abcdef"}, "*** ***"},
		"one that is escaped in a URL":                     {"?x=a%2Fb%2Bc%20d&y=a%2Fb%2Bc+d", []string{"a/b+c d"}, "?x=***&y=***"},
		"one that is escaped in JSON":                      {`{"secret":"a\"b"}`, []string{`a"b`}, `{"secret":"***"}`},
		"an empty one is none":                             {"text", []string{""}, "text"},
		"in a URL, though nobody knew":                     {"at 'blobstore://lab:s3cr3t@h:1/p?bucket=b': no", nil, "at 'blobstore://lab@h:1/p?bucket=b': no"},
		"with a token":                                     {"blobstore://lab:s3cr3t:t0ken@h/p", nil, "blobstore://lab@h/p"},
		"with what ends other parts of a URL":              {"blobstore://lab:s3/c@r?3t@h/p?bucket=b", nil, "blobstore://lab@h/p?bucket=b"},
		"with an @ of its own":                             {"blobstore://lab:s3@cr3t@h/p?bucket=b", nil, "blobstore://lab@h/p?bucket=b"},
		"in a header":                                      {"blobstore://lab@h/p?header=X-Key:s3cr3t&sc=0", nil, "blobstore://lab@h/p?header=***&sc=0"},
		"in a header with an @":                            {"blobstore://lab@h:1/p?header=X:s3@cr3t", nil, "blobstore://lab@h:1/p?header=***"},
		"in a parameter that nobody knows":                 {"blobstore://lab@h/p?sc=0&security_token=s3cr3t", nil, "blobstore://lab@h/p?sc=0&security_token=***"},
		"a folder with an @ has none":                      {"file:///a:b@c/d", nil, "file:///a:b@c/d"},
	} {
		t.Run(title, func(t *testing.T) { assert.Equal(t, test.want, fdb.Redact(test.text, test.secrets)) })
	}
}

func TestTextsAreBoundToOneLine(t *testing.T) {
	assert.Equal(t, "a b c d", fdb.Bound(" a\n\tb \x00 c\xff d\u2028", 100))
	assert.Equal(t, "abcdefg...", fdb.Bound("abcdefghijk", 10))
	assert.Empty(t, fdb.Bound("abc", 2))
}

func FuzzRedact(f *testing.F) {
	f.Add("blobstore://lab:s3cr3t@h/p?header=x s3cr3t", "s3cr3t")
	f.Add("a***b", "*")
	f.Fuzz(func(t *testing.T, text, secret string) {
		redacted := fdb.Redact(text, []string{secret})
		if secret != "" && !strings.Contains(secret, "*") && utf8.ValidString(text) {
			require.NotContains(t, redacted, secret)
		}
		require.LessOrEqual(t, len(fdb.Bound(text, 50)), 50)
		require.True(t, utf8.ValidString(fdb.Bound(text, 50)))
	})
}
