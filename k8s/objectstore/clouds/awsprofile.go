package clouds

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
)

// profile is one profile of an AWS credentials file.
type profile struct{ id, secret, token, region string }

// awsProfile reads one profile of an AWS credentials file, default if none is named. A problem is returned in words that hold
// nothing of the file. Only keys are read, never settings that would run a program, read a file or request another identity.
// The SDK's own reader would need a file on disk and reads this process's environment.
func awsProfile(content, name string) (profile, string) {
	if name == "" {
		name = "default"
	}
	var found profile
	fields := map[string]*string{
		"aws_access_key_id": &found.id, "aws_secret_access_key": &found.secret, "aws_session_token": &found.token,
		"region": &found.region,
	}
	inside, known := false, false
	for line := range strings.Lines(strings.ReplaceAll(content, "\r\n", "\n")) {
		line = strings.TrimSpace(line)
		switch {
		case line == "", strings.HasPrefix(line, "#"), strings.HasPrefix(line, ";"):
		case strings.HasPrefix(line, "["):
			inside = sectionName(line) == name
			known = known || inside
		case inside:
			if at := strings.IndexAny(line, "=:"); at > 0 {
				if field := fields[strings.ToLower(strings.TrimSpace(line[:at]))]; field != nil {
					*field = awsValue(line[at+1:])
				}
			}
		}
	}
	switch {
	case !known:
		return profile{}, fmt.Sprintf("there is no profile [%s] in it", name)
	case found.id == "" || found.secret == "":
		return profile{}, fmt.Sprintf("profile [%s] has no pair of keys: roles and tokens can be used by Velero only", name)
	}
	return found, ""
}

// sectionName returns "x" for "[x]" and "[profile x]".
func sectionName(line string) string {
	inner, _, closed := strings.Cut(line[1:], "]")
	if !closed {
		return ""
	}
	words := strings.Fields(inner)
	if len(words) == 2 && words[0] == "profile" {
		words = words[1:]
	}
	return strings.Join(words, " ")
}

func awsValue(value string) string {
	for _, mark := range []string{" #", " ;", "\t#", "\t;"} {
		value, _, _ = strings.Cut(value, mark)
	}
	value = strings.TrimSpace(value)
	for _, quote := range []string{`"`, `'`} {
		if len(value) >= 2 && strings.HasPrefix(value, quote) && strings.HasSuffix(value, quote) {
			return value[1 : len(value)-1]
		}
	}
	return value
}

var plainRegion = regexp.MustCompile(`^[a-z0-9-]{1,40}$`)

// regionIn returns the region that Amazon names in the error for a request sent to another region.
func regionIn(err error) string {
	var answer *awshttp.ResponseError
	if !errors.As(err, &answer) || answer.Response == nil {
		return ""
	}
	region := answer.Response.Header.Get("X-Amz-Bucket-Region")
	if !plainRegion.MatchString(region) {
		return ""
	}
	return region
}
