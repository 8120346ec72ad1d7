package e2e_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
	"holdfast.dev/holdfast/test/env"
)

// cliPatience is how long kubectl-oadp waits for a URL.
const cliPatience = 120 * time.Second

// cli sends what kubectl-oadp sends, as a tenant: the objects in the form in which its Go types write them, empty fields and
// all, and looks at the answers as it does, by their JSON names.
type cli struct {
	*tenant
	user, server string
	http         *http.Client
}

// newCLI is that of a new tenant: see repeated.
func newCLI(x *tenant, user string) *cli {
	x.t.Helper()
	config, err := stack.RESTConfig(user)
	require.NoError(x.t, err)
	connection, err := rest.HTTPClientFor(config)
	require.NoError(x.t, err)
	return &cli{tenant: x, user: user, server: config.Host, http: connection}
}

// send returns the answer to a request about a resource of the tenant's namespace.
func (c *cli) send(method, resource string, body any, want int) map[string]any {
	c.t.Helper()
	object, err := c.try(c.t.Context(), method, resource, body, want)
	require.NoError(c.t, err)
	return object
}

// try is send for a wait.
func (c *cli) try(ctx context.Context, method, resource string, body any, want int) (map[string]any, error) {
	content, err := json.Marshal(body)
	if err != nil {
		return nil, err
	}
	address := fmt.Sprintf("%s/apis/oadp.openshift.io/v1alpha1/namespaces/%s/%s", c.server, c.namespace, resource)
	request, err := http.NewRequestWithContext(ctx, method, address, bytes.NewReader(content))
	if err != nil {
		return nil, err
	}
	request.Header.Set("Content-Type", "application/json")
	answer, err := c.http.Do(request)
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	said, err := io.ReadAll(answer.Body)
	if err != nil {
		return nil, err
	}
	if answer.StatusCode != want {
		return nil, fmt.Errorf("%s %s: %s, not %d: %s", method, resource, answer.Status, want, said)
	}
	var object map[string]any
	err = json.Unmarshal(said, &object)
	return object, err
}

// awaitNone waits until no object of a kind is left in the tenant's namespace.
func (c *cli) awaitNone(resource string) {
	c.t.Helper()
	awaitSuccess(c.t, func(ctx context.Context) error {
		list, err := c.try(ctx, http.MethodGet, resource, nil, http.StatusOK)
		if left, _ := list["items"].([]any); err == nil && len(left) > 0 {
			err = fmt.Errorf("%d %s are left", len(left), resource)
		}
		return err
	})
}

// create posts an object; the specs are those of the commands, written out by hand.
func (c *cli) create(resource, kind string, metadata map[string]any, spec string) map[string]any {
	c.t.Helper()
	metadata["namespace"], metadata["creationTimestamp"] = c.namespace, nil
	return c.send(http.MethodPost, resource, map[string]any{
		"kind": kind, "apiVersion": "oadp.openshift.io/v1alpha1", "metadata": metadata,
		"spec": json.RawMessage(spec), "status": map[string]any{},
	}, http.StatusCreated)
}

func named(name string) map[string]any { return map[string]any{"name": name} }

// at returns what stands at a path of names in an object, nil if there is nothing.
func at(object map[string]any, path ...string) any {
	var found any = object
	for _, name := range path {
		inside, is := found.(map[string]any)
		if !is {
			return nil
		}
		found = inside[name]
	}
	return found
}

// until asks for an object as the commands do, until it is as wished.
func (c *cli) until(resource, name, want string, ok func(map[string]any) bool) map[string]any {
	c.t.Helper()
	begin := time.Now()
	var object map[string]any
	awaitSuccess(c.t, func(ctx context.Context) (err error) {
		c.checkTakenUpOnce()
		if object, err = c.try(ctx, http.MethodGet, resource+"/"+name, nil, http.StatusOK); err != nil || ok(object) {
			return err
		}
		status, _ := json.Marshal(object["status"])
		return fmt.Errorf("%s/%s: not %s; status %s", resource, name, want, status)
	})
	checkTook(c.t, resource+"/"+name+": "+want, time.Since(begin), cliPatience)
	return object
}

// download is what the commands logs and describe --details do: make a request, ask for its end, fetch, remove it. It returns
// the file, or the message of the condition that ended the wait.
func (c *cli) download(kind, name string) (content, refusal string) {
	c.t.Helper()
	const resource = "nonadmindownloadrequests"
	request := c.create(resource, "NonAdminDownloadRequest", map[string]any{"generateName": name + "-logs-"},
		fmt.Sprintf(`{"target":{"kind":%q,"name":%q}}`, kind, name))
	wanted := at(request, "metadata", "name").(string)
	defer c.send(http.MethodDelete, resource+"/"+wanted, nil, http.StatusOK)
	var address string
	c.until(resource, wanted, kind+" of "+name, func(object map[string]any) bool {
		conditions, _ := at(object, "status", "conditions").([]any)
		for _, each := range conditions {
			condition := each.(map[string]any)
			if condition["status"] != "True" {
				continue
			}
			if condition["reason"] == "Error" {
				refusal = condition["message"].(string)
				return true
			}
			if condition["type"] == "Processed" {
				address, _ = at(object, "status", "velero", "status", "downloadURL").(string)
			}
		}
		return address != ""
	})
	if refusal != "" {
		return "", refusal
	}
	signed := &nadr{}
	signed.Status.VeleroDownloadRequest.Status = &velerov1.DownloadRequestStatus{DownloadURL: address}
	keepSignature(c.t, address)
	code, packed := fetch(c.t, signed)
	require.Equal(c.t, http.StatusOK, code, "%s of %s", kind, name)
	return unpack(c.t, packed), ""
}

const (
	cliBackups   = "nonadminbackups"
	cliRestores  = "nonadminrestores"
	cliLocations = "nonadminbackupstoragelocations"
)

// createLocation is `nonadmin bsl create`.
func (c *cli) createLocation(name string, account env.Account) {
	c.t.Helper()
	c.secret("credentials", account.CredentialsFile())
	storage := stack.Storage()
	c.create(cliLocations, "NonAdminBackupStorageLocation", named(name), fmt.Sprintf(`{"backupStorageLocationSpec":{
		"provider":"aws","config":{"region":%q,"s3ForcePathStyle":"true","s3Url":%q},
		"credential":{"name":"credentials","key":"cloud"},"objectStorage":{"bucket":%q,"prefix":"cli"}}}`,
		storage.Region, storage.Endpoint, account.Bucket))
	c.until(cliLocations, name, "Available", func(object map[string]any) bool {
		return at(object, "status", "veleroBackupStorageLocation", "status", "phase") == "Available"
	})
}

// createBackup is `nonadmin backup create NAME --storage-location LOCATION`, or with --force, without.
func (c *cli) createBackup(name, location string) map[string]any {
	c.t.Helper()
	c.create(cliBackups, "NonAdminBackup", named(name), fmt.Sprintf(`{"backupSpec":{
		"metadata":{},"includedNamespaces":[%q],"includedResources":["*"],"snapshotVolumes":false,"ttl":"0s","hooks":{},
		"storageLocation":%q,"csiSnapshotTimeout":"0s","itemOperationTimeout":"0s"}}`, c.namespace, location))
	return c.until(cliBackups, name, "Completed", func(object map[string]any) bool {
		return at(object, "status", "veleroBackup", "status", "phase") == "Completed"
	})
}

// The requests of kubectl-oadp's commands, sent with a tenant's rights, and what the commands look for in the answers.
func TestTheRequestsOfKubectlOADPAreAnswered(t *testing.T) {
	t.Parallel()
	repeated(t, "grace", func(x *tenant) { newCLI(x, "grace").isAnswered() })
}

func (c *cli) isAnswered() {
	t := c.t
	account := newAccount(t)
	c.createLocation("own", account)
	nab := c.createBackup("nightly", "own")

	// get and describe print these.
	assert.Equal(t, "Created", at(nab, "status", "phase"))
	nacuuid := at(nab, "status", "veleroBackup", "nacuuid").(string)
	assert.Equal(t, nacuuid, at(nab, "status", "veleroBackup", "name"))
	assert.Equal(t, env.OADPNamespace, at(nab, "status", "veleroBackup", "namespace"))
	for _, moment := range []string{"startTimestamp", "completionTimestamp", "expiration"} {
		assert.NotEmpty(t, at(nab, "status", "veleroBackup", "status", moment), moment)
	}
	all := c.send(http.MethodGet, cliBackups, nil, http.StatusOK)
	require.Len(t, all["items"], 1)
	require.True(t, bucketHas(t, account, c.namespace+"/cli", nacuuid))

	// logs, and describe --details.
	for kind, holds := range map[string]string{
		"BackupLog": "backup=openshift-adp/" + nacuuid, "BackupResourceList": c.namespace + "/", "BackupVolumeInfos": "[]",
		"BackupResults": "{",
	} {
		content, refusal := c.download(kind, "nightly")
		require.Empty(t, refusal, kind)
		assert.Contains(t, content, holds, kind)
	}
	_, refusal := c.download("BackupLog", "nothing")
	assert.Contains(t, refusal, oadpv1alpha1.MessageBackupUnavailable)
	c.createBackup("forced", "") // create --force
	_, refusal = c.download("BackupLog", "forced")
	assert.Equal(t, oadpv1alpha1.MessageLocationNotUsed, refusal)

	c.restoreWithCLI()

	// delete: the object as read, with one field more.
	for _, name := range []string{"nightly", "forced"} {
		c.replaceForDeletion(name)
	}
	c.awaitNone(cliBackups)
	assert.False(t, bucketHas(t, account, c.namespace+"/cli", nacuuid))
	c.send(http.MethodDelete, cliLocations+"/own", nil, http.StatusOK)
}

// restoreWithCLI is what the later commands do: create, get, describe --details, logs, delete.
func (c *cli) restoreWithCLI() {
	t := c.t
	t.Helper()
	require.NotEmpty(t, configMaps(t, c.namespace))
	c.create(cliRestores, "NonAdminRestore", named("back"), `{"restoreSpec":{"backupName":"nightly","includedResources":["*"],
		"hooks":{},"itemOperationTimeout":"0s"}}`)
	nar := c.until(cliRestores, "back", "Completed", func(object map[string]any) bool {
		return at(object, "status", "veleroRestore", "status", "phase") == "Completed"
	})
	assert.Equal(t, "Created", at(nar, "status", "phase"), "create --wait ends with this")
	restored := at(nar, "status", "veleroRestore", "name").(string)
	for kind, holds := range map[string]string{
		"RestoreLog": "restore=openshift-adp/" + restored, "RestoreResults": "{", "RestoreResourceList": c.namespace + "/",
	} {
		content, refusal := c.download(kind, "back")
		require.Empty(t, refusal, kind)
		assert.Contains(t, content, holds, kind)
	}
	_, refusal := c.download("RestoreLog", "nothing")
	assert.Contains(t, refusal, oadpv1alpha1.MessageRestoreUnavailable)
	c.send(http.MethodDelete, cliRestores+"/back", nil, http.StatusOK)
	c.awaitNone(cliRestores)
}

// replaceForDeletion updates the whole object. Holdfast may have written its status since: the user is told to try again then.
func (c *cli) replaceForDeletion(name string) {
	c.t.Helper()
	awaitSuccess(c.t, func(ctx context.Context) error {
		nab, err := c.try(ctx, http.MethodGet, cliBackups+"/"+name, nil, http.StatusOK)
		if err != nil {
			return err
		}
		nab["spec"].(map[string]any)["deleteBackup"] = true
		_, err = c.try(ctx, http.MethodPut, cliBackups+"/"+name, nab, http.StatusOK)
		return err
	})
}

// The command itself, where there is one: KUBECTL_OADP is its path.
func TestKubectlOADPItself(t *testing.T) {
	binary := os.Getenv("KUBECTL_OADP")
	if binary == "" {
		t.Skip("KUBECTL_OADP is not set: its requests are replayed by TestTheRequestsOfKubectlOADPAreAnswered")
	}
	t.Parallel()
	repeated(t, "heidi", func(x *tenant) { newCLI(x, "heidi").runsItself(binary) })
}

func (c *cli) runsItself(binary string) {
	t := c.t
	c.createLocation("own", newAccount(t))
	home := t.TempDir()
	config, err := clientcmd.LoadFromFile(stack.Kubeconfig(c.user))
	require.NoError(t, err)
	config.Contexts[config.CurrentContext].Namespace = c.namespace
	kubeconfig := filepath.Join(home, "kubeconfig")
	require.NoError(t, clientcmd.WriteToFile(*config, kubeconfig))
	run := func(arguments ...string) string {
		t.Helper()
		command := exec.CommandContext(t.Context(), binary, append([]string{"nonadmin"}, arguments...)...)
		command.Env = append(os.Environ(), "HOME="+home, "KUBECONFIG="+kubeconfig)
		command.Stdin = strings.NewReader("y\n") // older ones ask before they delete
		said, err := command.CombinedOutput()
		require.NoError(t, err, "%v: %s", arguments, said)
		return string(said)
	}
	completed := func(resource, name, mirror string) {
		c.until(resource, name, "Completed", func(object map[string]any) bool {
			return at(object, "status", mirror, "status", "phase") == "Completed"
		})
	}
	run("backup", "create", "nightly", "--storage-location", "own", "--snapshot-volumes=false")
	completed(cliBackups, "nightly", "veleroBackup")
	assert.Contains(t, run("backup", "get"), "nightly")
	assert.Contains(t, run("backup", "describe", "nightly"), "nightly")
	assert.Contains(t, run("backup", "logs", "nightly"), c.namespace)

	if help := run("--help"); strings.Contains(help, "restore") {
		from := "--backup-name"
		if !strings.Contains(run("restore", "create", "--help"), from) {
			from = "--from-backup"
		}
		run("restore", "create", "back", from, "nightly")
		completed(cliRestores, "back", "veleroRestore")
		assert.Contains(t, run("restore", "get"), "back")
		assert.Contains(t, run("restore", "describe", "back"), "back")
		assert.Contains(t, run("restore", "logs", "back"), c.namespace)
		run("restore", "delete", "back", "--confirm")
	}
	run("backup", "delete", "nightly", "--confirm")
	c.awaitNone(cliBackups)
}
