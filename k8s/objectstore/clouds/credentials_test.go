package clouds

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestAWSCredentialsFiles(t *testing.T) {
	const keys = "aws_access_key_id = A\naws_secret_access_key=S/+=\n"
	for title, test := range map[string]struct {
		content, profile string
		want             profile
		problem          string
	}{
		"the usual":          {content: "[default]\n" + keys, want: profile{id: "A", secret: "S/+="}},
		"carriage returns":   {content: strings.ReplaceAll("[default]\n"+keys, "\n", "\r\n"), want: profile{id: "A", secret: "S/+="}},
		"colons, capitals":   {content: " [default]\nAWS_ACCESS_KEY_ID: A\n aws_secret_access_key : S", want: profile{id: "A", secret: "S"}},
		"quotes and remarks": {content: "# x\n[default] # y\naws_access_key_id = 'A' # z\naws_secret_access_key = \"S#1\"\n", want: profile{id: "A", secret: "S#1"}},
		"token and region": {
			content: "[default]\n" + keys + "aws_session_token=T\nregion = eu\n",
			want:    profile{id: "A", secret: "S/+=", token: "T", region: "eu"},
		},
		"one of several": {
			content: "[default]\naws_access_key_id=X\naws_secret_access_key=Y\n[profile night]\n" + keys + "[b]\n",
			profile: "night", want: profile{id: "A", secret: "S/+="},
		},
		"another one is asked for": {content: "[default]\n" + keys, profile: "night", problem: "no profile [night]"},
		"no profile":               {content: keys, problem: "no profile [default]"},
		"nothing":                  {content: "", problem: "no profile [default]"},
		"no secret":                {content: "[default]\naws_access_key_id = marker\n", problem: "no pair of keys"},
		"a program":                {content: "[default]\ncredential_process = marker\n", problem: "no pair of keys"},
		"a role":                   {content: "[default]\nrole_arn = marker\nweb_identity_token_file = marker\n", problem: "no pair of keys"},
	} {
		t.Run(title, func(t *testing.T) {
			got, problem := awsProfile(test.content, test.profile)
			assert.Equal(t, test.want, got)
			assert.Contains(t, problem, test.problem)
			assert.Equal(t, test.problem == "", problem == "")
			assert.NotContains(t, problem, "marker")
		})
	}
}

func TestAzureVariables(t *testing.T) {
	assert.Equal(t, map[string]string{
		"PLAIN": "a=b", "SPACED": "c", "QUOTED": "d # e", "SINGLE": `f\n`, "EXPORTED": "g", "COLON": "h", "EMPTY": "",
		"CERTIFICATE": "-----BEGIN\nx\n", "OPEN": `"i`,
	}, dotenv(strings.Join([]string{
		"PLAIN=a=b", " SPACED = c # remark", `QUOTED="d # e" # remark`, `SINGLE='f\n'`, "export EXPORTED=g", "COLON: h", "EMPTY=",
		`CERTIFICATE="-----BEGIN\nx\n"`, `OPEN="i`, "# REMARK=x", "no variable", "",
	}, "\n")))
}
