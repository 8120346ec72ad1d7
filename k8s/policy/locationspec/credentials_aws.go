package locationspec

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"holdfast.dev/holdfast/k8s/policy/check"
)

const defaultProfile = "default"

// Keys that an AWS credentials file may set. Both keys of the pair are required: for a profile without them the SDK uses the
// identity of the machine that it runs on.
var (
	awsKeyPair = []string{"aws_access_key_id", "aws_secret_access_key"}
	awsAllowed = append(slices.Clone(awsKeyPair), "aws_session_token", "region", "output")
)

// awsRefused are the keys that the SDK reads and that are refused by name. The error for a key in neither list does not name
// it.
var awsRefused = []string{
	// run a program, read a file, or take the identity of the machine
	"credential_process", "web_identity_token_file", "credential_source", "ca_bundle", "login_session",
	// use another identity
	"role_arn", "source_profile", "external_id", "mfa_serial", "role_session_name", "duration_seconds",
	"sso_session", "sso_account_id", "sso_region", "sso_role_name", "sso_start_url",
	// send requests elsewhere
	"services", "endpoint_url", "ec2_metadata_service_endpoint", "ec2_metadata_service_endpoint_mode",
}

// awsProfiles reads an AWS shared credentials file and returns the names of its profiles, each of which has a pair of keys; an
// error if it is anything else.
//
// The SDK's reader is lenient: it ignores lines that it does not understand, and reads indented lines as keys, continuations or
// nested keys, depending on the lines before. Here every line must be blank, a comment, a [profile] or one key of the list with
// a value, or without one that the SDK does not need: then there is only one way to read it. Lines are split as the SDK splits
// them.
func awsProfiles(content string) (map[string]bool, error) {
	if strings.HasPrefix(content, "\uFEFF") {
		return nil, check.External("it begins with a byte order mark, which the AWS SDK does not understand")
	}
	content = strings.ReplaceAll(content, "\r\n", "\n")
	if !utf8.ValidString(content) || strings.ContainsFunc(content, unprintable) {
		return nil, check.External("it holds control characters or is not UTF-8 text")
	}
	file := awsFile{profiles: map[string]bool{}}
	for i, line := range strings.Split(content, "\n") {
		file.line = i + 1
		if err := file.read(line); err != nil {
			return nil, err
		}
	}
	if err := file.endProfile(); err != nil {
		return nil, err
	}
	if len(file.profiles) == 0 {
		return nil, check.External("there is no [default] or other profile in it")
	}
	return file.profiles, nil
}

func unprintable(r rune) bool { return unicode.IsControl(r) && r != '\n' && r != '\t' }

// awsFile is a credentials file up to a line.
type awsFile struct {
	profiles map[string]bool
	line     int
	since    int      // the line at which the current profile begins; 0 before the first
	empty    bool     // the last key has no value: the SDK reads an indented line after it as a part of it
	missing  []string // keys that the current profile lacks
}

func (f *awsFile) read(line string) error {
	comment := strings.TrimLeft(line, " \t")
	if strings.TrimSpace(line) == "" || strings.HasPrefix(comment, "#") || strings.HasPrefix(comment, ";") {
		return nil
	}
	if f.empty && strings.TrimLeft(line, " \t") != line {
		return check.External("line %d is indented under a key without a value, and the AWS SDK takes it for a part of that: "+
			"do not indent it", f.line)
	}
	f.empty = false
	if header, _, _ := strings.Cut(strings.ReplaceAll(line, ";", "#"), "#"); strings.HasPrefix(strings.TrimSpace(header), "[") {
		return f.beginProfile(strings.TrimSpace(header))
	}
	return f.set(line)
}

func (f *awsFile) beginProfile(header string) error {
	if err := f.endProfile(); err != nil {
		return err
	}
	inner, closed := strings.CutSuffix(header[1:], "]")
	words := strings.FieldsFunc(inner, func(r rune) bool { return r == ' ' || r == '\t' })
	if len(words) == 2 && words[0] == "profile" {
		words = words[1:]
	}
	// "services x" and "sso-session x" are not profiles.
	if !closed || len(words) != 1 || strings.TrimSpace(words[0]) != words[0] || strings.ContainsAny(words[0], "[]") {
		return check.External("line %d does not name a profile: write [default] or [name]", f.line)
	}
	f.profiles[words[0]] = true
	f.since, f.missing = f.line, slices.Clone(awsKeyPair)
	return nil
}

func (f *awsFile) endProfile() error {
	if f.since > 0 && len(f.missing) > 0 {
		return check.External("the profile that begins in line %d has no %s", f.since, f.missing[0])
	}
	return nil
}

func (f *awsFile) set(line string) error {
	at := strings.IndexAny(line, "=:")
	if at < 0 {
		return f.refuse("is not understood")
	}
	key := strings.ToLower(strings.TrimSpace(line[:at]))
	switch {
	case slices.Contains(awsRefused, key):
		return f.refuse("sets " + key + ", which is not allowed")
	case !slices.Contains(awsAllowed, key):
		return f.refuse("is not understood")
	case f.since == 0:
		return check.External("line %d comes before the first profile: begin with [default]", f.line)
	case !slices.Contains(awsKeyPair, key) && isEmptyValue(line[at+1:]): // as tools write what they have none of
		f.empty = true
	case isBlankValue(line[at+1:]) || isBlankValue(beforeComment(line[at+1:])):
		return check.External("line %d gives %s no value", f.line, key)
	}
	f.missing = slices.DeleteFunc(f.missing, func(missing string) bool { return missing == key })
	return nil
}

func (f *awsFile) refuse(problem string) error {
	return check.External("%s", fmt.Sprintf("line %d %s: an AWS credentials file may hold profiles with %s only",
		f.line, problem, strings.Join(awsAllowed, ", ")))
}

// isEmptyValue reports whether a value is empty, however it is read.
func isEmptyValue(value string) bool {
	return slices.Contains([]string{"", `""`, "''"}, strings.TrimSpace(beforeComment(value)))
}

// isBlankValue reports whether the SDK could read a value as empty. It removes quotes and comments in either order. A single
// quote makes it panic, and Velero with it.
func isBlankValue(value string) bool {
	value = strings.TrimSpace(value)
	for _, quote := range []string{`"`, `'`} {
		if value == quote {
			return true
		}
		if strings.HasPrefix(value, quote) && strings.HasSuffix(value, quote) {
			value = value[1 : len(value)-1]
			break
		}
	}
	return strings.TrimSpace(beforeComment(value)) == ""
}

func beforeComment(value string) string {
	for _, mark := range []string{" #", " ;", "\t#", "\t;"} {
		value, _, _ = strings.Cut(value, mark)
	}
	return value
}
