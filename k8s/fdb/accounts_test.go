package fdb_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"holdfast.dev/holdfast/k8s/fdb"
)

func TestAccountsAreReadInTheOrderOfTheFile(t *testing.T) {
	accounts, err := fdb.ParseAccounts([]byte(`{
		"comment": {"accounts": {"not@this": {}}},
		"accounts": {
			"zoe@b.example.org": {"secret": "1", "token": "t"},
			"adam@a.example.org": {"secret": "2", "more": [1, {"x": null}]},
			"zoe@127.0.0.1": {"secret": "3"}
		},
		"after": []
	}`))
	require.NoError(t, err)
	assert.Equal(t, []fdb.Account{
		{Name: "zoe", Host: "b.example.org"}, {Name: "adam", Host: "a.example.org"}, {Name: "zoe", Host: "127.0.0.1"},
	}, accounts)
}

func TestACredentialsFileIsRefusedWithoutQuotingIt(t *testing.T) {
	const form = `it must be JSON of the form {"accounts":{"NAME@HOST":{"secret":"..."}}}`
	for title, test := range map[string]struct{ file, want string }{
		"nothing":                     {"", form},
		"no JSON":                     {"s3cr3t", form},
		"a list":                      {`["s3cr3t"]`, form},
		"cut off":                     {`{"accounts":{"lab@h":{"secret":"s3cr3t"}`, form},
		"cut off in the accounts":     {`{"accounts":{"lab@h":{"secret":"s3cr3t"},`, form},
		"something after it":          {`{"accounts":{"lab@h":{"secret":"s3cr3t"}}} s3cr3t`, form},
		"a broken neighbour":          {`{"x":s3cr3t,"accounts":{"lab@h":{"secret":"1"}}}`, form},
		"a profile of AWS":            {"[default]\naws_secret_access_key = s3cr3t", form},
		"no accounts":                 {`{"s3cr3t":{}}`, "it has no accounts"},
		"accounts without any":        {`{"accounts":{}}`, "it has no accounts"},
		"accounts that are a list":    {`{"accounts":["s3cr3t"]}`, form},
		"accounts twice":              {`{"accounts":{"lab@h":{"secret":"s3cr3t"}},"accounts":{}}`, `it has the key "accounts" twice`},
		"an account twice":            {`{"accounts":{"lab@h":{"secret":"s3cr3t"},"lab@h":{"secret":"x"}}}`, "its account no. 2 is there twice"},
		"an account with a port":      {`{"accounts":{"lab@h:7070":{"secret":"s3cr3t"}}}`, "its account no. 1 has a port or a secret in its key: FoundationDB looks accounts up by NAME@HOST alone"},
		"an account with a secret":    {`{"accounts":{"lab:s3cr3t@h":{"secret":"s3cr3t"}}}`, "its account no. 1 is not NAME@HOST"},
		"an account without a host":   {`{"accounts":{"a@h":{"secret":"1"},"s3cr3t":{"secret":"1"}}}`, "its account no. 2 is not NAME@HOST"},
		"an account without a name":   {`{"accounts":{"@s3cr3t":{"secret":"1"}}}`, "its account no. 1 is not NAME@HOST"},
		"a host that is none":         {`{"accounts":{"lab@s3cr3t/x":{"secret":"1"}}}`, "its account no. 1 is not NAME@HOST"},
		"an account of another kind":  {`{"accounts":{"lab@h":"s3cr3t"}}`, `its account no. 1 has no "secret"`},
		"an account without a secret": {`{"accounts":{"lab@h":{"password":"s3cr3t"}}}`, `its account no. 1 has no "secret"`},
		"a secret under another key":  {`{"accounts":{"lab@h":{"Secret":"s3cr3t"}}}`, `its account no. 1 has no "secret"`},
		"a secret that is no text":    {`{"accounts":{"lab@h":{"secret":["s3cr3t"]}}}`, `its account no. 1 has no "secret"`},
		"an empty secret":             {`{"accounts":{"lab@h":{"secret":""}}}`, `its account no. 1 has no "secret"`},
	} {
		t.Run(title, func(t *testing.T) {
			accounts, err := fdb.ParseAccounts([]byte(test.file))
			require.EqualError(t, err, test.want)
			assert.Empty(t, accounts)
			assert.NotContains(t, err.Error(), "s3cr3t")
		})
	}
}

// FuzzParseAccounts: whatever is in the file, its accounts can be written into URLs, and an error quotes nothing of it.
func FuzzParseAccounts(f *testing.F) {
	for _, file := range []string{
		`{"accounts":{"lab@h":{"secret":"x"},"k@example.org":{"secret":"y","token":"z"}}}`, `{"accounts":{"lab@h:1":{"secret":"x"}}}`,
		`{"accounts":[]}`, `{"accounts":{"":{}}}`, `{`, `{"accounts":null}`, "{\"accounts\":{\"\u0000@h\":{\"secret\":\"x\"}}}",
	} {
		f.Add([]byte(file))
	}
	f.Fuzz(func(t *testing.T, file []byte) {
		accounts, err := fdb.ParseAccounts(file)
		if err != nil {
			require.Regexp(t, `^it(s account no\. \d+)? (has|is|must be) [A-Za-z@"{}:. ,-]+$`, err.Error())
			return
		}
		require.NotEmpty(t, accounts)
		for _, account := range accounts {
			d := fdb.Destination{Account: account.Name, Host: account.Host, Bucket: "bucket", Path: "p"}
			again, err := fdb.ParseURL(d.URL())
			require.NoError(t, err, account)
			require.Equal(t, d, again)
		}
	})
}
