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
			"zoe@127.0.0.1": {"secret": "3"},
			"@b.example.org": {"api_key": "k", "secret": "4"}
		},
		"after": []
	}`))
	require.NoError(t, err)
	assert.Equal(t, []fdb.Account{
		{Name: "zoe", Host: "b.example.org"},
		{Name: "adam", Host: "a.example.org"},
		{Name: "zoe", Host: "127.0.0.1"},
		{Host: "b.example.org"},
	}, accounts)
}

// FoundationDB accepts such a file: flaws of accounts that a backup does not use are no problem.
func TestOtherKeysOfACredentialsFileAreLeftAlone(t *testing.T) {
	const port = "has a port in its key, where FoundationDB expects NAME@HOST alone (remove the port)"
	const apiKey = `has no "api_key", which an account without a name needs`
	accounts, err := fdb.ParseAccounts([]byte(`{"accounts": {
		"lab@store:9000": {"secret": "1"}, "s3cr3t": {"secret": "2"}, "lab:s3cr3t@h": "3", "old@h": {"api_key": "4"}, "list@h": [5],
		"k@h": {"secret": "6"}, "lab@h": {"secret": "7"}, "k@h": {"secret": "8"}, "k@[::1]:9000": {"secret": "9"},
		"@nokey": {"secret": "10"}, "@nosecret": {"api_key": "11"}, "@h:9000": {"api_key": "12", "secret": "13"}
	}}`))
	require.NoError(t, err)
	assert.Equal(t, []fdb.Account{
		{Name: "lab", Host: "store", Flaw: port},
		{Name: "old", Host: "h", Flaw: `has no "secret"`},
		{Name: "list", Host: "h", Flaw: `has no "secret"`},
		{Name: "k", Host: "h", Flaw: "is listed twice"},
		{Name: "lab", Host: "h"},
		{Name: "k", Host: "h", Flaw: "is listed twice"},
		{Host: "nokey", Flaw: apiKey},
		{Host: "nosecret", Flaw: `has no "secret"`},
		{Host: "h", Flaw: port},
	}, accounts)
	for title, test := range map[string]struct{ name, host, want string }{
		"the account that is there": {"lab", "h", ""},
		"another":                   {"eve", "h", "has no account eve@h"},
		"its name elsewhere":        {"lab", "elsewhere", "has no account lab@elsewhere"},
		"with a port":               {"lab", "store", "has no account lab@store; its lab@store " + port},
		"without a secret":          {"old", "h", `has no account old@h; its old@h has no "secret"`},
		"without a name":            {"", "elsewhere", "has no account @elsewhere"},
		"without name and api_key":  {"", "nokey", "has no account @nokey; its @nokey " + apiKey},
	} {
		t.Run(title, func(t *testing.T) {
			assert.Equal(t, test.want, fdb.Lacking(accounts, fdb.Destination{Account: test.name, Host: test.host, Port: "9000"}))
		})
	}
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
		"an account twice":            {`{"accounts":{"lab@h":{"secret":"s3cr3t"},"lab@h":{"secret":"x"}}}`, "its account no. 2 is listed twice"},
		"an account with a port":      {`{"accounts":{"lab@h:7070":{"secret":"s3cr3t"}}}`, "its account no. 1 has a port in its key, where FoundationDB expects NAME@HOST alone (remove the port)"},
		"an account with a secret":    {`{"accounts":{"lab:s3cr3t@h":{"secret":"s3cr3t"}}}`, "its account no. 1 is not NAME@HOST"},
		"an account without a host":   {`{"accounts":{"s3cr3t":{"secret":"1"}}}`, "its account no. 1 is not NAME@HOST"},
		"a secret for a port":         {`{"accounts":{"lab@h:s3cr3t":{"secret":"1"}}}`, "its account no. 1 is not NAME@HOST"},
		"nothing but flaws":           {`{"accounts":{"lab@h":{},"@":{},"k@h:1":{"secret":"1"}}}`, `its account no. 1 has no "secret"`},
		"an account without a name":   {`{"accounts":{"@s3cr3t":{"secret":"1"}}}`, `its account no. 1 has no "api_key", which an account without a name needs`},
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

// FuzzParseAccounts: the accounts of every file can be written into URLs, and an error quotes nothing of the file.
func FuzzParseAccounts(f *testing.F) {
	for _, file := range []string{
		`{"accounts":{"lab@h":{"secret":"x"},"k@example.org":{"secret":"y","token":"z"}}}`, `{"accounts":{"lab@h:1":{"secret":"x"}}}`,
		`{"accounts":{"@h":{"api_key":"k","secret":"x"}}}`,
		`{"accounts":[]}`, `{"accounts":{"":{}}}`, `{`, `{"accounts":null}`, "{\"accounts\":{\"\u0000@h\":{\"secret\":\"x\"}}}",
	} {
		f.Add([]byte(file))
	}
	f.Fuzz(func(t *testing.T, file []byte) {
		accounts, err := fdb.ParseAccounts(file)
		if err != nil {
			require.Regexp(t, `^it(s account no\. \d+)? (has|is|must be) [A-Za-z_@"{}():. ,-]+$`, err.Error())
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
