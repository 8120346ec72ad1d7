package locationspec

import (
	"bytes"
	"regexp"

	"holdfast.dev/holdfast/k8s/policy/check"
)

const (
	// azureKeyConfig is the key of a location's configuration that names the variable with a storage account's key.
	azureKeyConfig = "storageAccountKeyEnvVar"
	// azureCertificatePath is the variable that names a file of Velero's to read.
	azureCertificatePath = "AZURE_CLIENT_CERTIFICATE_PATH"
)

// checkAzureCredentials refuses credentials that name a file. The content is a list of variables, which Velero's releases
// read in different ways; the name must not occur in it at all.
func checkAzureCredentials(content []byte) error {
	if bytes.Contains(content, []byte(azureCertificatePath)) {
		return check.External("it must not hold %s: put the certificate into AZURE_CLIENT_CERTIFICATE", azureCertificatePath)
	}
	return nil
}

// azureSecret is a line that holds a secret of the tenant's, in a form that all of Velero's releases read in the same way.
var azureSecret = regexp.MustCompile(`(?m)^AZURE_CLIENT_(SECRET|CERTIFICATE)=["']?[^\s"'#$\\]`)

// azureBlank is such a line without a value (the last of several counts), or with a quote whose end some releases look for in
// the next lines.
var azureBlank = regexp.MustCompile(`(?m)` +
	`^\s*(export\s+)?AZURE_CLIENT_(SECRET|CERTIFICATE)\s*[=:]\s*("\s*"|'\s*'|["']?\s*([#$\\]|$))` +
	`|[=:]\s*("[^"\n]*|'[^'\n]*)$`)

// checkAzureIdentity: without a key or secret of the tenant's, Azure's library uses the identity of the machine or pod that it
// runs in. Velero itself reads a storage account's key, and fails if it is missing.
func checkAzureIdentity(config map[string]string, content []byte) error {
	if config[azureKeyConfig] != "" {
		return nil
	}
	if !azureSecret.Match(content) || azureBlank.Match(content) {
		return check.External("it must hold a line AZURE_CLIENT_SECRET=... or AZURE_CLIENT_CERTIFICATE=..., " +
			"or the location's config.storageAccountKeyEnvVar must name the variable with the storage account's key")
	}
	return nil
}
