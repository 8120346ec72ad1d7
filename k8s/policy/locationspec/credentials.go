package locationspec

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"io"
	"strings"

	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"

	"holdfast.dev/holdfast/k8s/policy/check"
)

const maxCredentialBytes = 64 << 10

// CheckStoredCredentials judges the content of the Secret's key that a location names: nil, or a *check.InvalidSpecError whose
// cause lies in the Secret. spec is what Build returned: it decides how Velero reads the content.
//
// Velero reads the content with the rights of its own process, in which the providers' libraries can be made to run a program,
// to read another file or to use Velero's own identity. Only credentials that are complete in themselves are allowed. Errors
// quote nothing of the content but names out of a fixed list.
func CheckStoredCredentials(spec *velerov1.BackupStorageLocationSpec, content []byte) error {
	provider := plainProvider(spec.Provider)
	if err := CheckCredentials(provider, content); err != nil {
		return err
	}
	switch {
	case provider == providerAWS:
		profiles, _ := awsProfiles(string(content))
		profile := cmp.Or(spec.Config["profile"], defaultProfile)
		if !profiles[profile] {
			return check.External("there is no [%s], which is the profile that the location uses", profile)
		}
	case provider == providerAzure:
		return checkAzureIdentity(spec.Config, content)
	case provider != providerGCP && spec.Config["s3Url"] != "":
		// Velero's repositories treat every provider that they do not know as AWS if it has this.
		_, err := awsProfiles(string(content))
		return err
	}
	return nil
}

// CheckCredentials is the part of CheckStoredCredentials that depends only on the provider.
func CheckCredentials(provider string, content []byte) error {
	switch {
	case len(bytes.TrimSpace(content)) == 0:
		return check.External("there is nothing in it")
	case len(content) > maxCredentialBytes:
		return check.External("it is too large: %d bytes, %d are allowed", len(content), maxCredentialBytes)
	}
	switch plainProvider(provider) {
	case "":
		return check.External("the provider that it is for is not known")
	case providerAWS:
		_, err := awsProfiles(string(content))
		return err
	case providerGCP:
		return checkServiceAccount(content)
	case providerAzure:
		return checkAzureCredentials(content)
	}
	return nil
}

// checkServiceAccount allows the key of a Google service account only. Credentials of the other types name programs to run,
// files to read, URLs to fetch tokens from, or other accounts to act for.
func checkServiceAccount(content []byte) error {
	decoder := json.NewDecoder(bytes.NewReader(content))
	start, err := decoder.Token()
	if err != nil || start != json.Delim('{') {
		return errNoServiceAccount
	}
	kinds := 0
	for decoder.More() {
		name, err := decoder.Token()
		if err != nil {
			return errNoServiceAccount
		}
		var value any
		if err := decoder.Decode(&value); err != nil {
			return errNoServiceAccount
		}
		// Google's libraries read names without regard to case, and the last of several counts.
		if key, _ := name.(string); strings.EqualFold(key, "type") {
			kinds++
			if key != "type" || value != "service_account" || kinds > 1 {
				return errNoServiceAccount
			}
		}
	}
	if _, err := decoder.Token(); err != nil || kinds == 0 {
		return errNoServiceAccount
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return errNoServiceAccount
	}
	return nil
}

var errNoServiceAccount = check.External(`it must be the JSON key of a Google service account ("type": "service_account")`)
