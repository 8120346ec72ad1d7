package fdb_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	fdbv1alpha1 "holdfast.dev/holdfast/k8s/api/fdb/v1alpha1"
	"holdfast.dev/holdfast/k8s/fdb"
)

var someAccounts = []fdb.Account{
	{Name: "lab", Host: "127.0.0.1"}, {Name: "prod", Host: "s3.example.org"}, {Name: "lab", Host: "s3.example.org"},
}

func backupTo(change func(spec *fdbv1alpha1.FoundationDBBackupSpec)) *fdbv1alpha1.FoundationDBBackup {
	backup := &fdbv1alpha1.FoundationDBBackup{ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: "orders"}}
	backup.Spec.Destination.Bucket = "fdb-backups"
	if change != nil {
		change(&backup.Spec)
	}
	return backup
}

func TestADestinationIsResolvedWithTheAccountsOfTheCredentialsFile(t *testing.T) {
	type spec = fdbv1alpha1.FoundationDBBackupSpec
	for title, test := range map[string]struct {
		change func(spec *spec)
		want   string
	}{
		"nothing said: the first account, the object's name": {nil, "blobstore://lab@127.0.0.1/orders?bucket=fdb-backups"},
		"stored without defaults": {
			func(s *spec) { s.Destination.Bucket = "" }, "blobstore://lab@127.0.0.1/orders?bucket=fdb-backups",
		},
		"a name: the first account of that name": {
			func(s *spec) { s.Destination.Account = "prod" }, "blobstore://prod@s3.example.org/orders?bucket=fdb-backups",
		},
		"a name and a host": {
			func(s *spec) { s.Destination.Account = "lab@s3.example.org" }, "blobstore://lab@s3.example.org/orders?bucket=fdb-backups",
		},
		"a name, a host and a port": {
			func(s *spec) { s.Destination.Account = "lab@127.0.0.1:7070" }, "blobstore://lab@127.0.0.1:7070/orders?bucket=fdb-backups",
		},
		"an endpoint alone: the first account's name there": {
			func(s *spec) { s.Destination.Endpoint = "s3.example.org:443" }, "blobstore://lab@s3.example.org:443/orders?bucket=fdb-backups",
		},
		"an endpoint wins over the account's host and port": {
			func(s *spec) { s.Destination.Account, s.Destination.Endpoint = "lab@127.0.0.1:7070", "s3.example.org" },
			"blobstore://lab@s3.example.org/orders?bucket=fdb-backups",
		},
		"bucket, path and parameters": {
			func(s *spec) {
				s.Destination.Bucket, s.Destination.Path = "b.1", "team-a/orders_1.x"
				s.URLParameters = []string{"secure_connection=0", "region=us-east-1", "sbps=1000000"}
			},
			"blobstore://lab@127.0.0.1/team-a/orders_1.x?bucket=b.1&region=us-east-1&sbps=1000000&secure_connection=0",
		},
	} {
		t.Run(title, func(t *testing.T) {
			d, err := fdb.Resolve(backupTo(test.change), someAccounts)
			require.NoError(t, err)
			assert.Equal(t, test.want, d.URL())
		})
	}
}

func TestADestinationThatCannotBeIsRefusedInASentence(t *testing.T) {
	type spec = fdbv1alpha1.FoundationDBBackupSpec
	parameters := func(all ...string) func(s *spec) { return func(s *spec) { s.URLParameters = all } }
	const (
		form     = "spec.destination.account must be name, name@host, @host, or one of these with :port"
		endpoint = "spec.destination.endpoint must be host or host:port"
		path     = "spec.destination.path may hold only letters, digits, _, -, . and /, must not begin or end with / and must not " +
			"contain . or .. as a part: FoundationDB accepts no other names"
		bucket = "spec.destination.bucket must have 3 to 63 lower-case letters, digits, dots and hyphens"
		known  = "lab@127.0.0.1, prod@s3.example.org, lab@s3.example.org: correct spec.destination or the Secret"
	)
	for title, test := range map[string]struct {
		change func(spec *spec)
		want   string
	}{
		"an account that is not in the file": {
			func(s *spec) { s.Destination.Account = "eve" },
			`the credentials file does not have an account named "eve", only ` + known,
		},
		"an account at a host that is not in the file": {
			func(s *spec) { s.Destination.Account = "lab@10.0.0.1" }, `the credentials file does not have the account "lab@10.0.0.1", only ` + known,
		},
		"an endpoint that the account is not at": {
			func(s *spec) { s.Destination.Account, s.Destination.Endpoint = "prod", "127.0.0.1:80" },
			`the credentials file does not have the account "prod@127.0.0.1", only ` + known,
		},
		"a secret in the account": {
			func(s *spec) { s.Destination.Account = "lab:s3cr3t@127.0.0.1" }, form + "; its secret belongs in the credentials file",
		},
		"an account without a name that is not in the file": {
			func(s *spec) { s.Destination.Account = "@127.0.0.1" },
			`the credentials file does not have the account "@127.0.0.1", only ` + known,
		},
		"neither name nor host":         {func(s *spec) { s.Destination.Account = "@" }, form},
		"an account with two hosts":     {func(s *spec) { s.Destination.Account = "lab@a@127.0.0.1" }, form},
		"an account with a bad port":    {func(s *spec) { s.Destination.Account = "lab@127.0.0.1:0" }, form},
		"an endpoint with a bad port":   {func(s *spec) { s.Destination.Endpoint = "127.0.0.1:65536" }, endpoint},
		"an endpoint with an empty one": {func(s *spec) { s.Destination.Endpoint = "127.0.0.1:" }, endpoint},
		"an endpoint with an account":   {func(s *spec) { s.Destination.Endpoint = "lab@127.0.0.1" }, endpoint},
		"an endpoint that is a URL":     {func(s *spec) { s.Destination.Endpoint = "http://127.0.0.1/x?y" }, endpoint},
		"a path that leaves the place":  {func(s *spec) { s.Destination.Path = "a/../b" }, path},
		"a path with parameters":        {func(s *spec) { s.Destination.Path = "a?bucket=other" }, path},
		"a path from the root":          {func(s *spec) { s.Destination.Path = "/a" }, path},
		"a path with an empty part":     {func(s *spec) { s.Destination.Path = "a//b" }, path},
		"a path that is too long":       {func(s *spec) { s.Destination.Path = strings.Repeat("a", 641) }, path},
		"a path with a line break":      {func(s *spec) { s.Destination.Path = "a\n" }, path},
		"a bucket that is none":         {func(s *spec) { s.Destination.Bucket = "a&sdk_auth=1" }, bucket},
		"a header": {
			parameters("header=Authorization:s3cr3t"),
			`spec.urlParameters must not set "header": a header can carry a secret, and a URL is shown to everybody; secrets belong in the ` +
				"credentials file",
		},
		"the identity of the machine": {
			parameters("sa=1"), `spec.urlParameters must not set "sa": it would have the commands use the identity of the machine that they ` +
				"run on instead of the credentials file",
		},
		"a bucket among the parameters": {
			parameters("bucket=b"), `spec.urlParameters must not set "bucket": the bucket is set by spec.destination.bucket`,
		},
		"an unknown parameter": {
			parameters("secure=0"),
			`spec.urlParameters has "secure", which is not a URL parameter of FoundationDB 7.1 to 7.4: correct or remove it`,
		},
		"a parameter twice": {
			parameters("region=a", "region=b"), "spec.urlParameters sets region twice (region and region): remove one of them",
		},
		"a parameter under both its names": {
			parameters("sc=1", "secure_connection=0"),
			"spec.urlParameters sets secure_connection twice (sc and secure_connection): remove one of them",
		},
		"no number": {
			parameters("connect_tries=x"), "spec.urlParameters: connect_tries must be a whole number from 0 to 2147483647",
		},
		"a number with a sign": {parameters("rt=+1"), "spec.urlParameters: rt must be a whole number from 0 to 2147483647"},
		"a number that is too big": {
			parameters("sbps=2147483648"), "spec.urlParameters: sbps must be a whole number from 0 to 2147483647",
		},
		"neither TLS nor none":  {parameters("sc=2"), "spec.urlParameters: sc must be 1 (TLS) or 0"},
		"a region that is none": {parameters("region=a/b"), "spec.urlParameters: region must be the name of a region, for example region=eu-west-1"},
		"a second parameter in the value": {
			parameters("region=a&sdk_auth=1"), "spec.urlParameters: region must be the name of a region, for example region=eu-west-1",
		},
	} {
		t.Run(title, func(t *testing.T) {
			d, err := fdb.Resolve(backupTo(test.change), someAccounts)
			var refused *fdb.DestinationError
			require.ErrorAs(t, err, &refused)
			assert.Equal(t, test.want, refused.Message)
			assert.Zero(t, d)
		})
	}
}

// The tools look such an account up by @HOST, and read its name there, too (apple/foundationdb#11825).
func TestAnAccountMayHaveItsNameOnlyInTheFile(t *testing.T) {
	nameless := fdb.Account{Host: "s3.example.org"}
	for title, test := range map[string]struct {
		account, endpoint string
		accounts          []fdb.Account
		want              string
	}{
		"the first of the file": {"", "", append([]fdb.Account{nameless}, someAccounts...), "@s3.example.org"},
		"by its host":           {"@s3.example.org", "", append(someAccounts[:3:3], nameless), "@s3.example.org"},
		"by its host, with a port": {
			"@s3.example.org:7070", "", append(someAccounts[:3:3], nameless), "@s3.example.org:7070",
		},
		"at another port": {"", "s3.example.org:7070", []fdb.Account{nameless}, "@s3.example.org:7070"},
		"not instead of a name": {
			"lab@s3.example.org", "", append([]fdb.Account{nameless}, someAccounts...), "lab@s3.example.org",
		},
	} {
		t.Run(title, func(t *testing.T) {
			d, err := fdb.Resolve(backupTo(func(s *fdbv1alpha1.FoundationDBBackupSpec) {
				s.Destination.Account, s.Destination.Endpoint = test.account, test.endpoint
			}), test.accounts)
			require.NoError(t, err)
			assert.Equal(t, "blobstore://"+test.want+"/orders?bucket=fdb-backups", d.URL())
		})
	}
}

func TestManyAccountsAreNotAllListed(t *testing.T) {
	var accounts []fdb.Account
	for range 100 {
		accounts = append(accounts, fdb.Account{Name: strings.Repeat("n", 128), Host: strings.Repeat("h", 200)})
	}
	_, err := fdb.Resolve(backupTo(func(s *fdbv1alpha1.FoundationDBBackupSpec) { s.Destination.Account = "eve" }), accounts)
	require.ErrorContains(t, err, "and 96 more")
	assert.LessOrEqual(t, len(err.Error()), 512)

	_, err = fdb.Resolve(backupTo(nil), nil)
	require.EqualError(t, err, "the credentials file has no account")
}

func TestPlacesAreTheSameWhateverTheParameters(t *testing.T) {
	d := fdb.Destination{Account: "a", Host: "h", Port: "1", Bucket: "bbb", Path: "p"}
	assert.True(t, d.SamePlace(fdb.Destination{Account: "a", Host: "h", Port: "1", Bucket: "bbb", Path: "p", Parameters: []string{"sc=0"}}))
	for title, other := range map[string]fdb.Destination{
		"account": {Account: "b", Host: "h", Port: "1", Bucket: "bbb", Path: "p"},
		"host":    {Account: "a", Host: "i", Port: "1", Bucket: "bbb", Path: "p"},
		"port":    {Account: "a", Host: "h", Bucket: "bbb", Path: "p"},
		"bucket":  {Account: "a", Host: "h", Port: "1", Bucket: "ccc", Path: "p"},
		"path":    {Account: "a", Host: "h", Port: "1", Bucket: "bbb", Path: "q"},
	} {
		assert.False(t, d.SamePlace(other), title)
	}
}

func TestTheParametersOfFoundationDBAreAccepted(t *testing.T) {
	for title, test := range map[string]struct {
		parameter string
		accepted  bool
	}{
		"a long name":                       {"max_send_bytes_per_second=1", true},
		"its short one":                     {"sbps=0", true},
		"the name before it was changed":    {"request_timeout=5", true},
		"one of 7.4 only":                   {"enable_object_integrity_check=1", true},
		"the short name that the code has":  {"crpf=3", true},
		"the one that only the manual has":  {"crps=3", false},
		"a name in capitals":                {"SC=0", false},
		"an option of the tool":             {"--log=1", false},
		"a parameter without a name":        {"=1", false},
		"a parameter without a value":       {"sc", false},
		"a number that other programs read": {"rt=0x10", false},
	} {
		t.Run(title, func(t *testing.T) {
			_, err := fdb.Resolve(backupTo(func(s *fdbv1alpha1.FoundationDBBackupSpec) { s.URLParameters = []string{test.parameter} }),
				someAccounts)
			assert.Equal(t, test.accepted, err == nil, "%v", err)
		})
	}
}

func TestAccountsWithFlawsAreNotUsed(t *testing.T) {
	accounts := []fdb.Account{
		{Name: "lab", Host: "127.0.0.1", Flaw: "has a port in its key"}, {Name: "prod", Host: "s3.example.org"},
	}
	d, err := fdb.Resolve(backupTo(nil), accounts)
	require.NoError(t, err)
	assert.Equal(t, "prod", d.Account, "the first that FoundationDB finds")
	for _, account := range []string{"lab", "lab@127.0.0.1", "lab@127.0.0.1:9000"} {
		_, err = fdb.Resolve(backupTo(func(s *fdbv1alpha1.FoundationDBBackupSpec) { s.Destination.Account = account }), accounts)
		require.ErrorContains(t, err, "only prod@s3.example.org; its lab@127.0.0.1 has a port in its key: correct ")
	}
	_, err = fdb.Resolve(backupTo(nil), accounts[:1])
	require.EqualError(t, err, "the credentials file has no account")
}
