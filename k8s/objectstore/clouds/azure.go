package clouds

import (
	"context"
	"fmt"
	"net/url"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/cloud"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azidentity"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"
	"gocloud.dev/blob/azureblob"

	"holdfast.dev/holdfast/k8s/objectstore"
)

// azureClouds are the clouds that AZURE_CLOUD_NAME can name, with the domain of their storage accounts.
var azureClouds = map[string]struct {
	configuration cloud.Configuration
	domain        string
}{
	"":                       {cloud.AzurePublic, "blob.core.windows.net"},
	"AZURECLOUD":             {cloud.AzurePublic, "blob.core.windows.net"},
	"AZUREPUBLICCLOUD":       {cloud.AzurePublic, "blob.core.windows.net"},
	"AZURECHINACLOUD":        {cloud.AzureChina, "blob.core.chinacloudapi.cn"},
	"AZUREUSGOVERNMENT":      {cloud.AzureGovernment, "blob.core.usgovcloudapi.net"},
	"AZUREUSGOVERNMENTCLOUD": {cloud.AzureGovernment, "blob.core.usgovcloudapi.net"},
}

// openAzure opens a container with the key of its storage account, or else as the application whose secret or certificate the
// credential holds. The application needs the role Storage Blob Data Contributor: Velero's plugin can use it to fetch the
// account's key instead; this package does not.
func openAzure(ctx context.Context, a *access) (*objectstore.Store, error) {
	account := a.config["storageAccount"]
	if account == "" {
		return nil, unusable(a.action, "config.storageAccount is missing")
	}
	variables := dotenv(string(a.credential))
	place, known := azureClouds[strings.ToUpper(variables["AZURE_CLOUD_NAME"])]
	if !known {
		return nil, unusable(a.action, "its credential names an unknown AZURE_CLOUD_NAME")
	}
	if authority := a.config["activeDirectoryAuthorityURI"]; authority != "" {
		place.configuration.ActiveDirectoryAuthorityHost = authority
	}
	address := firstOf(a.config["storageAccountURI"], fmt.Sprintf("https://%s.%s", account, place.domain))
	if parsed, err := url.Parse(address); err != nil || parsed.Host == "" || parsed.User != nil {
		return nil, unusable(a.action, "config.storageAccountURI is no URL")
	}
	address = strings.TrimSuffix(address, "/") + "/" + url.PathEscape(a.bucket)
	client, err := azureClient(a, variables, account, address, policy.ClientOptions{
		Cloud: place.configuration, Transport: a.client(),
	})
	if err != nil {
		return nil, err
	}
	bucket, err := azureblob.OpenBucket(ctx, client, nil)
	if err != nil {
		return nil, failed(a.action, err)
	}
	return a.store(bucket), nil
}

func azureClient(
	a *access, variables map[string]string, account, address string, options policy.ClientOptions,
) (*container.Client, error) {
	if name := a.config["storageAccountKeyEnvVar"]; name != "" {
		// The texts of these errors may repeat the key.
		key, err := azblob.NewSharedKeyCredential(account, variables[name])
		if variables[name] == "" || err != nil {
			return nil, unusable(a.action, "its credential holds no storage account key under the name of config.storageAccountKeyEnvVar")
		}
		client, err := container.NewClientWithSharedKeyCredential(address, key, &container.ClientOptions{ClientOptions: options})
		if err != nil {
			return nil, failed(a.action, err)
		}
		return client, nil
	}
	identity, problem := azureIdentity(variables, options)
	if problem != "" {
		return nil, unusable(a.action, "its credential: %s", problem)
	}
	client, err := container.NewClient(address, identity, &container.ClientOptions{ClientOptions: options})
	if err != nil {
		return nil, failed(a.action, err)
	}
	return client, nil
}

// azureIdentity is the application of the credential, never the identity of the machine or pod.
func azureIdentity(variables map[string]string, options policy.ClientOptions) (azcore.TokenCredential, string) {
	tenant, application := variables["AZURE_TENANT_ID"], variables["AZURE_CLIENT_ID"]
	secret, certificate := variables["AZURE_CLIENT_SECRET"], variables["AZURE_CLIENT_CERTIFICATE"]
	const cannot = "AZURE_TENANT_ID, AZURE_CLIENT_ID and the application's secret or certificate cannot be used"
	switch {
	case tenant == "" || application == "" || secret+certificate == "":
		return nil, "AZURE_TENANT_ID, AZURE_CLIENT_ID and AZURE_CLIENT_SECRET or AZURE_CLIENT_CERTIFICATE are needed, " +
			"or config.storageAccountKeyEnvVar: other identities can be used by Velero only"
	case secret != "":
		identity, err := azidentity.NewClientSecretCredential(tenant, application, secret,
			&azidentity.ClientSecretCredentialOptions{ClientOptions: options})
		if err != nil {
			return nil, cannot
		}
		return identity, ""
	}
	chain, key, err := azidentity.ParseCertificates([]byte(certificate), []byte(variables["AZURE_CLIENT_CERTIFICATE_PASSWORD"]))
	if err != nil {
		return nil, cannot
	}
	identity, err := azidentity.NewClientCertificateCredential(tenant, application, chain, key,
		&azidentity.ClientCertificateCredentialOptions{ClientOptions: options})
	if err != nil {
		return nil, cannot
	}
	return identity, ""
}

// dotenv reads lines of `NAME=value`, as Velero does. Any other line is skipped: an error would have to repeat it.
func dotenv(content string) map[string]string {
	variables := map[string]string{}
	for line := range strings.Lines(content) {
		line = strings.TrimSpace(strings.TrimPrefix(strings.TrimSpace(line), "export "))
		at := strings.IndexAny(line, "=:")
		if at <= 0 || strings.HasPrefix(line, "#") {
			continue
		}
		variables[strings.TrimSpace(line[:at])] = dotenvValue(strings.TrimSpace(line[at+1:]))
	}
	return variables
}

func dotenvValue(value string) string {
	if len(value) == 0 || (value[0] != '"' && value[0] != '\'') {
		value, _, _ = strings.Cut(value, "#")
		return strings.TrimSpace(value)
	}
	quote := value[:1]
	end := strings.LastIndex(value[1:], quote)
	if end < 0 {
		return value
	}
	value = value[1 : end+1]
	if quote == `"` {
		value = strings.NewReplacer(`\n`, "\n", `\r`, "\r", `\\`, `\`, `\"`, `"`).Replace(value)
	}
	return value
}
