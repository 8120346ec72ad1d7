package locationspec

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"holdfast.dev/holdfast/k8s/policy/check"
)

const awsKeys = "aws_access_key_id = AKIAMARKER\naws_secret_access_key = SECRETMARKER/+=\n"

// requireRefused requires a verdict that repeats nothing of the content. In the tests' contents what must not be repeated
// holds the word marker, in any case.
func requireRefused(t *testing.T, err error, want string) {
	t.Helper()
	var verdict *check.InvalidSpecError
	require.ErrorAs(t, err, &verdict)
	require.Contains(t, verdict.Message, want)
	require.True(t, verdict.External, "the Secret can change while the spec stays")
	require.NotContains(t, strings.ToLower(verdict.Message), "marker")
}

func TestAWSCredentialsThatStandForThemselves(t *testing.T) {
	for name, content := range map[string]string{
		"the usual":               "[default]\n" + awsKeys,
		"no space and no newline": "[default]\naws_access_key_id=A\naws_secret_access_key=S",
		"carriage returns":        strings.ReplaceAll("[default]\n"+awsKeys, "\n", "\r\n"),
		"all that is allowed":     "[default]\n" + awsKeys + "aws_session_token=T\nregion = eu\noutput = json\n",
		"what a tool has none of": "[default]\n" + awsKeys + "aws_session_token =\nregion = # none\n\noutput=\"\"\n[b]\n" + awsKeys,
		"colons":                  "[default]\naws_access_key_id: A\naws_secret_access_key: S\n",
		"indented":                "  [default]\n  aws_access_key_id = A\n\taws_secret_access_key = S\n",
		"comments": "# ünïcode [x]\n; credential_process = x\n[default] # mine\n" +
			awsKeys + "  # a\nregion = eu # b\n",
		"capitals":                 "[default]\nAWS_ACCESS_KEY_ID = A\nAws_Secret_Access_Key = S\n",
		"quotes":                   "[default]\naws_access_key_id = \"A\"\naws_secret_access_key = 'S'\n",
		"a secret full of signs":   "[default]\naws_access_key_id = A=:#;[]\naws_secret_access_key = '\"é%$\\\n",
		"several profiles":         "[default]\n" + awsKeys + "[profile a]\n" + awsKeys + "[b]\n" + awsKeys,
		"one profile in two parts": "[default]\n" + awsKeys + "\n[default]\n" + awsKeys,
	} {
		t.Run(name, func(t *testing.T) {
			for _, provider := range []string{"aws", "velero.io/aws"} {
				require.NoError(t, CheckCredentials(provider, []byte(content)))
				require.NoError(t, CheckStoredCredentials(&locationSpec{Provider: provider}, []byte(content)))
			}
		})
	}
}

func TestAWSCredentialsThatReachFurtherAreRefused(t *testing.T) {
	const only = ": an AWS credentials file may hold profiles with aws_access_key_id, aws_secret_access_key, " +
		"aws_session_token, region, output only"
	const whole = "[default]\n" + awsKeys
	const notRead = "line 4 is not understood" + only
	for name, tt := range map[string]struct{ content, want string }{
		"a program":           {whole + "credential_process = /bin/marker", "line 4 sets credential_process, which is not allowed" + only},
		"in capitals":         {whole + "CREDENTIAL_Process=/bin/marker", "line 4 sets credential_process, which is not allowed" + only},
		"with a colon":        {whole + "credential_process: /bin/marker", "line 4 sets credential_process, which is not allowed" + only},
		"indented":            {whole + "\tcredential_process = marker", "line 4 sets credential_process, which is not allowed" + only},
		"in a profile":        {whole + "[marker]\n" + awsKeys + "role_arn=marker", "line 7 sets role_arn, which is not allowed" + only},
		"under a key":         {whole + "s3 =\n  endpoint_url = marker", notRead},
		"after a value":       {whole + "region =\n  endpoint_url = marker", "line 5 is indented under a key without a value"},
		"a key after it":      {"[default]\nregion = ''\n# marker\n\n\t" + awsKeys, "line 5 is indented under a key without a value"},
		"a profile after it":  {whole + "region =\n [marker]\n" + awsKeys, "line 5 is indented under a key without a value"},
		"a quote for a value": {whole + "region = '", "line 4 gives region no value"},

		"a key that the SDK does not know": {whole + "marker = x", notRead},
		"a word":                           {whole + "marker", notRead},
		"a continued line":                 {whole + " marker", notRead},
		"a key in quotes":                  {whole + "\"credential_process\" = marker", notRead},
		"a key after a comment sign":       {whole + "region #marker = x", notRead},
		"an unusual space":                 {whole + "\u00a0marker = x", notRead},

		"a program without keys": {"[default]\ncredential_process = marker", "line 2 sets credential_process"},
		"a profile without keys": {"[default]\nregion = marker\n", "the profile that begins in line 1 has no aws_access_key_id"},
		"half of the keys":       {"[default]\naws_access_key_id=MARKER\n", "the profile that begins in line 1 has no aws_secret_access_key"},
		"the other half":         {"\n[marker]\naws_secret_access_key=MARKER\n[default]\n" + awsKeys, "begins in line 2 has no aws_access_key_id"},
		"keys without profile":   {awsKeys, "line 1 comes before the first profile: begin with [default]"},
		"only comments":          {"# [default]\n", "there is no [default] or other profile in it"},
		"no value":               {"[default]\naws_access_key_id =\naws_secret_access_key=MARKER", "line 2 gives aws_access_key_id no value"},
		"a comment for a value":  {"[default]\naws_access_key_id = #marker", "line 2 gives aws_access_key_id no value"},
		"quotes around nothing":  {"[default]\naws_access_key_id = '' #marker", "line 2 gives aws_access_key_id no value"},
		"quotes around a comment": {
			"[default]\n aws_access_key_id = ' #marker'", "line 2 gives aws_access_key_id no value",
		},
		"a quote that stops Velero": {"[default]\naws_access_key_id = \"\n", "line 2 gives aws_access_key_id no value"},
		"such a quote in a comment": {"[default]\naws_access_key_id = ' #marker\n", "line 2 gives aws_access_key_id no value"},

		"a section for services":    {whole + "[services marker]\n" + awsKeys, "line 4 does not name a profile: write [default] or [name]"},
		"a section for single sign": {whole + "[sso-session marker]\n" + awsKeys, "line 4 does not name a profile"},
		"a profile without name":    {"[]\n" + awsKeys, "line 1 does not name a profile"},
		"a bracket left open":       {"[default\n" + awsKeys, "line 1 does not name a profile"},
		"a key in brackets":         {whole + "[marker]=marker]", "line 4 does not name a profile"},

		"a byte order mark":    {"\ufeff" + whole, "byte order mark"},
		"a lone return":        {"[default]\naws_access_key_id=A\raws_secret_access_key=MARKER\n", "control characters"},
		"another control sign": {whole + "region = marker\x0b\n", "control characters"},
		"no text":              {whole + "region = marker\xff\n", "is not UTF-8 text"},
		"nothing":              {" \n", "there is nothing in it"},
		"too much":             {whole + "#" + strings.Repeat("x", maxCredentialBytes), "it is too large: 65618 bytes, 65536 are allowed"},
	} {
		t.Run(name, func(t *testing.T) {
			requireRefused(t, CheckCredentials("aws", []byte(tt.content)), tt.want)
			requireRefused(t, CheckStoredCredentials(&locationSpec{Provider: "velero.io/aws"}, []byte(tt.content)), tt.want)
		})
	}
}

func TestNoKeyOfTheSDKIsBothAllowedAndRefused(t *testing.T) {
	for _, key := range awsRefused {
		require.NotContains(t, awsAllowed, key)
		requireRefused(t, CheckCredentials("aws", []byte("[default]\n"+awsKeys+key+"=marker")), "sets "+key+",")
	}
}

func TestTheProfileOfALocationMustBeThere(t *testing.T) {
	content := []byte("[profile a]\n" + awsKeys)
	of := func(profile string) *locationSpec {
		return &locationSpec{Provider: "aws", Config: map[string]string{"profile": profile}}
	}
	require.NoError(t, CheckStoredCredentials(of("a"), content))
	for _, profile := range []string{"", "default", "A", "profile a"} {
		requireRefused(t, CheckStoredCredentials(of(profile), content), "which is the profile that the location uses")
	}
}

func TestGoogleCredentials(t *testing.T) {
	const refused = `it must be the JSON key of a Google service account ("type": "service_account")`
	for name, tt := range map[string]struct {
		content string
		allowed bool
	}{
		"a service account":              {`{"type":"service_account","private_key":"MARKER","client_email":"x"}`, true},
		"its name written otherwise":     {`{"\u0074ype" : "service_account"} ` + "\n", true},
		"an external account":            {`{"type":"external_account","credential_source":{"executable":{"command":"marker"}}}`, false},
		"an impersonated account":        {`{"type":"impersonated_service_account"}`, false},
		"a user":                         {`{"type":"authorized_user"}`, false},
		"no type":                        {`{"project_id":"marker"}`, false},
		"a type that is no string":       {`{"type":["service_account"]}`, false},
		"two types":                      {`{"type":"external_account","type":"service_account"}`, false},
		"a second type in other letters": {`{"type":"service_account","Type":"external_account"}`, false},
		"a type in other letters":        {`{"TYPE":"service_account"}`, false},
		"a type further in":              {`{"x":{"type":"service_account"}}`, false},
		"a list":                         {`[{"type":"service_account"}]`, false},
		"two documents":                  {`{"type":"service_account"}{"type":"external_account"}`, false},
		"half a document":                {`{"type":"service_account","private_key":"MARKER`, false},
		"a document without end":         {`{"type":"service_account"`, false},
		"a null":                         {`null`, false},
		"an AWS file":                    {"[default]\n" + awsKeys, false},
	} {
		t.Run(name, func(t *testing.T) {
			for _, err := range []error{
				CheckCredentials("gcp", []byte(tt.content)), CheckCredentials("velero.io/gcp", []byte(tt.content)),
				CheckStoredCredentials(&locationSpec{Provider: "gcp"}, []byte(tt.content)),
			} {
				if tt.allowed {
					require.NoError(t, err)
					continue
				}
				requireRefused(t, err, refused)
			}
		})
	}
}

func TestAzureCredentials(t *testing.T) {
	const needsOwn = "it must hold a line AZURE_CLIENT_SECRET=... or AZURE_CLIENT_CERTIFICATE=..., "
	const ids = "AZURE_TENANT_ID=t\nAZURE_CLIENT_ID=c\n"
	for name, tt := range map[string]struct {
		content, withKey, without string
	}{
		"a client's secret":          {ids + "AZURE_CLIENT_SECRET=s~._-\n", "", ""},
		"a client's secret, quoted":  {ids + "AZURE_CLIENT_SECRET='s'\r\nAZURE_CLOUD_NAME=\"AzurePublicCloud\"\r\n", "", ""},
		"a client's certificate":     {ids + "AZURE_CLIENT_CERTIFICATE=\"-----BEGIN\\n\"\n", "", ""},
		"the key of an account":      {"KEY=MARKER==\n", "", needsOwn},
		"the identity of Velero":     {ids, "", needsOwn},
		"an empty secret":            {ids + "AZURE_CLIENT_SECRET=\n", "", needsOwn},
		"a secret that is a comment": {ids + "AZURE_CLIENT_SECRET= # marker\n", "", needsOwn},
		"a secret in a comment":      {ids + "# AZURE_CLIENT_SECRET=marker\n", "", needsOwn},
		"a secret and then none":     {ids + "AZURE_CLIENT_SECRET=marker\nexport AZURE_CLIENT_SECRET=''\n", "", needsOwn},
		"a variable for a secret":    {ids + "AZURE_CLIENT_SECRET=$MARKER\n", "", needsOwn},
		"a secret within a value":    {"X=\"\nAZURE_CLIENT_SECRET=marker\n\"\n", "", needsOwn},
		"a file": {
			ids + "AZURE_CLIENT_CERTIFICATE_PATH=/marker\n",
			"it must not hold AZURE_CLIENT_CERTIFICATE_PATH", "it must not hold AZURE_CLIENT_CERTIFICATE_PATH",
		},
	} {
		t.Run(name, func(t *testing.T) {
			spec := &locationSpec{Provider: "azure", Config: map[string]string{"storageAccountKeyEnvVar": "KEY"}}
			for _, want := range []string{tt.withKey, tt.without} {
				err := CheckStoredCredentials(spec, []byte(tt.content))
				if want == "" {
					require.NoError(t, err)
				} else {
					requireRefused(t, err, want)
				}
				spec.Config = nil
			}
		})
	}
}

func TestCredentialsForOtherProviders(t *testing.T) {
	require.NoError(t, CheckCredentials("example.com/tape", []byte("marker")))
	requireRefused(t, CheckCredentials("example.com/tape", nil), "there is nothing in it")
	requireRefused(t, CheckCredentials("", []byte("marker")), "the provider that it is for is not known")

	spec := &locationSpec{Provider: "example.com/tape"}
	require.NoError(t, CheckStoredCredentials(spec, []byte("marker")))
	spec.Config = map[string]string{"s3Url": "https://s3.example"}
	requireRefused(t, CheckStoredCredentials(spec, []byte("[default]\ncredential_process=marker")), "credential_process")
	require.NoError(t, CheckStoredCredentials(spec, []byte("[default]\n"+awsKeys)))
}
