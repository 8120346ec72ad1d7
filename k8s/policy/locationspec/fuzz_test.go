package locationspec

import (
	"errors"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
	kjson "sigs.k8s.io/json"

	"holdfast.dev/holdfast/k8s/policy"
	"holdfast.dev/holdfast/k8s/policy/check"
	"holdfast.dev/holdfast/k8s/policy/policytest"
)

// FuzzLocation: whatever a tenant writes is judged, and what is built from it stays in the tenant's folder, with the copy of
// the tenant's Secret.
func FuzzLocation(f *testing.F) {
	const spec = `{"backupStorageLocationSpec":{"provider":"aws","default":true,"objectStorage":{"bucket":"b","prefix":"p"},` +
		`"credential":{"name":"n","key":"k"},"config":{"s3Url":"https://x:443","prefix":"x"}}}`
	for _, prefix := range []string{"", "a/b", "../team-b", `..\..\team-b`, "/..//../x/../..", "team-a/../..", "a\x00b", "...", "%2e%2e/"} {
		f.Add(prefix, []byte(spec))
	}
	f.Add("", []byte(`{"backupStorageLocationSpec":{"provider":"","backupSyncPeriod":"-1s","accessMode":"x"}}`))
	f.Add("", []byte(`{"backupStorageLocationSpec":{"objectStorage":{"bucket":"a/../b","caCertRef":{"key":""}},"config":null}}`))
	f.Add("", []byte(`{"backupStorageLocationSpec":{"config":{"s3Url":"http://[::1:80"},"validationFrequency":"banana"}}`))
	f.Fuzz(func(t *testing.T, prefix string, document []byte) {
		nabsl := locationOf(nil)
		if kjson.UnmarshalCaseSensitivePreserveInts(document, &nabsl.Spec) != nil {
			t.Skip("the API server takes only objects")
		}
		given := nabsl.Spec.BackupStorageLocationSpec
		if given != nil && given.ObjectStorage != nil {
			given.ObjectStorage.Prefix = prefix
		}
		before := nabsl.DeepCopy()

		err := Validate(nabsl, policy.Policy{})
		var verdict *check.InvalidSpecError
		require.True(t, err == nil || errors.As(err, &verdict), "no verdict: %v", err)
		if verdict != nil {
			require.NotEmpty(t, verdict.Message)
			require.LessOrEqual(t, utf8.RuneCountInString(verdict.Message), check.MaxMessage+3)
		}

		built := Build(given, policy.Policy{}, policytest.Tenant, policytest.NACUUID)
		requireInFolder(t, built.ObjectStorage.Prefix)
		require.Nil(t, built.ObjectStorage.CACertRef)
		require.False(t, built.Default)
		require.Equal(t, policytest.NACUUID, built.Credential.Name)
		for key := range check.RestrictedConfig {
			require.NotContains(t, built.Config, key)
		}
		for _, change := range Changes(given, &built) {
			require.LessOrEqual(t, len(change.Field+change.From+change.To), 3*maxChangeBytes)
		}
		require.Equal(t, before, nabsl, "the tenant's object was changed")
	})
}

// requireInFolder walks a prefix element by element, taking both kinds of slashes for one.
func requireInFolder(t *testing.T, prefix string) {
	t.Helper()
	require.True(t, prefix == policytest.Tenant || strings.HasPrefix(prefix, policytest.Tenant+"/"), "%q", prefix)
	depth := 0
	for _, element := range strings.FieldsFunc(prefix, func(r rune) bool { return r == '/' || r == '\\' }) {
		switch element {
		case "..":
			depth--
		case ".":
		default:
			depth++
		}
		require.Positive(t, depth, "%q", prefix)
	}
}

// awsLine is any line of a credentials file that may be used. It is stricter than what the SDK understands, and says so
// without taking the line apart: whatever the SDK makes of such a line, it is no key but these.
var awsLine = regexp.MustCompile(`^(\s*|[ \t]*[#;].*|\s*\[\s*(profile\s+)?[^\s\[\]#;]+\s*\]\s*([#;].*)?|` +
	`\s*(?i:aws_access_key_id|aws_secret_access_key|aws_session_token|region|output)[\s\x{a0}]*[=:].*[^\s'"].*|` +
	`\s*(?i:aws_session_token|region|output)[\s\x{a0}]*[=:]\s*(''|"")?\s*)$`)

// FuzzCheckCredentials: whatever a Secret holds is judged without repeating it, and what is allowed for AWS sets nothing but
// keys and a region.
func FuzzCheckCredentials(f *testing.F) {
	for _, content := range []string{
		"[default]\n" + awsKeys,
		"[default]\n" + awsKeys + "credential_process = marker\n",
		"[default]\r\n  aws_access_key_id: 'A'\r\n\taws_secret_access_key = \"S\" # c\r\n[profile a] ; c\r\n" + awsKeys,
		"[default]\naws_access_key_id = ' #'\n", "\ufeff[default]\n", "s3 =\n  endpoint_url = x\n", "[services x]\n", "[a]b]\n",
		`{"type":"service_account","private_key":"MARKER"}`, `{"type":"external_account"}`, `{"Type":"x","type":"y"}`,
		"AZURE_CLIENT_SECRET=marker\n", "AZURE_CLIENT_SECRET=\"\n",
	} {
		f.Add([]byte(content))
	}
	f.Fuzz(func(t *testing.T, content []byte) {
		for _, provider := range []string{"aws", "gcp", "azure", "example.com/x", ""} {
			spec := &locationSpec{Provider: provider, Config: map[string]string{"s3Url": "x"}}
			for _, err := range []error{CheckCredentials(provider, content), CheckStoredCredentials(spec, content)} {
				if err != nil {
					requireOwnWords(t, err)
				} else if provider == providerAWS {
					requireHarmless(t, string(content))
				}
			}
		}
	})
}

// credentialTexts are all texts of verdicts on credentials, with N for a number and K for a key's name.
var credentialTexts = []string{
	"there is nothing in it",
	"it is too large: N bytes, N are allowed",
	"the provider that it is for is not known",
	"it begins with a byte order mark, which the AWS SDK does not understand",
	"it holds control characters or is not UTF-N text",
	"there is no [default] or other profile in it",
	"there is no [default], which is the profile that the location uses",
	"line N does not name a profile: write [default] or [name]",
	"line N comes before the first profile: begin with [default]",
	"line N gives K no value",
	"line N is indented under a key without a value, and the AWS SDK takes it for a part of that: do not indent it",
	"the profile that begins in line N has no K",
	"line N is not understood: an AWS credentials file may hold profiles with K, K, K, K, K only",
	"line N sets K, which is not allowed: an AWS credentials file may hold profiles with K, K, K, K, K only",
	`it must be the JSON key of a Google service account ("type": "service_account")`,
	"it must not hold AZURE_CLIENT_CERTIFICATE_PATH: put the certificate into AZURE_CLIENT_CERTIFICATE",
	"it must hold a line AZURE_CLIENT_SECRET=... or AZURE_CLIENT_CERTIFICATE=..., " +
		"or the location's config.storageAccountKeyEnvVar must name the variable with the storage account's key",
}

var (
	number  = regexp.MustCompile(`\d+`)
	keyName = regexp.MustCompile(`\b(` + strings.Join(slices.Concat(awsAllowed, awsRefused), "|") + `)\b`)
)

// requireOwnWords requires a verdict that holds nothing but our words: nothing of a Secret.
func requireOwnWords(t *testing.T, err error) {
	t.Helper()
	var verdict *check.InvalidSpecError
	require.ErrorAs(t, err, &verdict)
	require.True(t, verdict.External)
	require.Contains(t, credentialTexts, keyName.ReplaceAllString(number.ReplaceAllString(verdict.Message, "N"), "K"))
}

func requireHarmless(t *testing.T, content string) {
	t.Helper()
	for line := range strings.SplitSeq(content, "\n") {
		require.Regexp(t, awsLine, strings.TrimSuffix(line, "\r"))
	}
}
