// Package browser_test looks at a running backup as an operator does: with a browser, in Temporal's Web UI.
package browser_test

import (
	"context"
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"

	"holdfast.dev/holdfast/k8s"
	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
	"holdfast.dev/holdfast/k8s/eventually"
	"holdfast.dev/holdfast/test/env"
	"holdfast.dev/holdfast/workflows/contract"
	"holdfast.dev/holdfast/workflows/workflowtest/sample"
)

// What the Web UI shows of a running backup, asked of its server as the page asks it.
func TestTheWebUIsServerTellsOfARunningBackup(t *testing.T) {
	if testing.Short() {
		t.Skip("starts real components (-short)")
	}
	stack := startStack(t)
	other := backUp(t, stack, "bob", "bakery", "weekly")
	nab := backUp(t, stack, "alice", "shop", "nightly")
	workflows := stack.TemporalUI() + "/api/v1/namespaces/default/workflows"
	seen := awaitTold(t, http.MethodGet, workflows+"?query="+url.QueryEscape("HoldfastNamespace = 'shop'"), "", workflowID(stack, nab))
	assert.NotContains(t, seen, workflowID(stack, other), "the list is filtered")

	one := workflows + "/" + url.PathEscape(workflowID(stack, nab))
	awaitTold(t, http.MethodGet, one, "", "Backup of shop/nightly", "HoldfastCluster", `"`+stack.ClusterID()+`"`, `"NonAdminBackup"`,
		`"shop"`, `"nightly"`, `"Created"`)
	awaitTold(t, http.MethodGet, one+"/history", "", "Read the backup, mirror Velero's status, start or delete it if due")
	awaitTold(t, http.MethodPost, one+"/query/__temporal_workflow_metadata", `{"query":{"queryType":"__temporal_workflow_metadata"}}`,
		"Queued", "waits for Velero to start Velero Backup", nab.Status.VeleroBackup.Name)
}

// awaitTold asks until an answer has every text, in clear or in a payload, and returns all of it.
func awaitTold(t *testing.T, method, address, body string, texts ...string) (told string) {
	t.Helper()
	eventually.Succeeds(t, patience, func() error {
		ctx, cancel := context.WithTimeout(t.Context(), glance)
		defer cancel()
		request, err := http.NewRequestWithContext(ctx, method, address, strings.NewReader(body))
		if err != nil {
			return err
		}
		request.Header.Set("Content-Type", "application/json")
		request.Header.Set("Authorization", "none") // without it the server wants the token that a page has
		answer, err := http.DefaultClient.Do(request)
		if err != nil {
			return err
		}
		defer answer.Body.Close()
		content, err := io.ReadAll(answer.Body)
		if err != nil {
			return err
		}
		told = inClear(string(content))
		for _, text := range texts {
			if !strings.Contains(told, text) {
				return fmt.Errorf("%s %s: %s, without %q: %s", method, address, answer.Status, text, told)
			}
		}
		return nil
	})
	return told
}

var payloadData = regexp.MustCompile(`"data": ?"([A-Za-z0-9+/=]+)"`)

// inClear decodes the payloads of an answer.
func inClear(answer string) string {
	return payloadData.ReplaceAllStringFunc(answer, func(field string) string {
		data, err := base64.StdEncoding.DecodeString(payloadData.FindStringSubmatch(field)[1])
		if err != nil {
			return field
		}
		return `"data":` + string(data)
	})
}

func TestTheWebUIShowsARunningBackup(t *testing.T) {
	sample.InLong(t, "TestTheWebUIsServerTellsOfARunningBackup")
	if testing.Short() {
		t.Skip("starts real components (-short)")
	}
	chromium := findChromium(t)
	stack := startStack(t)
	other := backUp(t, stack, "bob", "bakery", "weekly")
	nab := backUp(t, stack, "alice", "shop", "nightly")
	page := openBrowser(t, chromium)

	query := url.QueryEscape("HoldfastNamespace = 'shop'")
	page.open(stack.TemporalUI() + "/namespaces/default/workflows?query=" + query)
	page.awaitText(workflowID(stack, nab))
	page.hasNot(workflowID(stack, other)) // the list is filtered

	page.follow(workflowID(stack, nab))
	page.awaitText("Backup of shop/nightly", "Read the backup, mirror Velero's status, start or delete it if due")

	page.follow("User Metadata") // Markdown, drawn: without asterisks and backquotes
	page.awaitText("Backup of shop/nightly",
		"Queued: waits for Velero to start Velero Backup "+nab.Status.VeleroBackup.Name+".")
	page.picture("web-ui", 1600, 760)

	page.follow("Search Attributes")
	page.awaitText(`"HoldfastCluster": "`+stack.ClusterID()+`"`, `"HoldfastKind": "NonAdminBackup"`,
		`"HoldfastNamespace": "shop"`, `"HoldfastName": "nightly"`, `"HoldfastPhase": "Created"`)
}

func workflowID(stack *env.Env, nab *oadpv1alpha1.NonAdminBackup) string {
	return contract.WorkflowID(stack.ClusterID(), contract.KindBackup,
		contract.ObjectRef{Namespace: nab.Namespace, Name: nab.Name, UID: string(nab.UID)})
}

// startStack starts everything but Velero: its Backup stays new, and the workflow waits for it.
func startStack(t *testing.T) *env.Env {
	t.Helper()
	ctrllog.SetLogger(logr.Discard())
	ctx, cancel := context.WithTimeout(t.Context(), 15*time.Minute)
	defer cancel()
	stack, err := env.Start(ctx, env.Options{Progress: t.Output(), Holdfast: true, Without: []string{env.S3, env.Velero}})
	require.NoError(t, err)
	t.Cleanup(stack.Stop)
	require.NoError(t, clientOf(t, stack, env.Admin).Create(t.Context(), &velerov1.BackupStorageLocation{
		ObjectMeta: metav1.ObjectMeta{Namespace: env.OADPNamespace, Name: env.DefaultStorageLocation},
		Spec: velerov1.BackupStorageLocationSpec{
			Provider: "aws", Default: true,
			StorageType: velerov1.StorageType{ObjectStorage: &velerov1.ObjectStorageLocation{Bucket: "none"}},
		},
	}))
	return stack
}

func clientOf(t *testing.T, stack *env.Env, user string) client.Client {
	t.Helper()
	config, err := stack.RESTConfig(user)
	require.NoError(t, err)
	made, err := client.New(config, client.Options{Scheme: k8s.Scheme()})
	require.NoError(t, err)
	return made
}

// backUp creates a backup as a tenant and returns it when its Velero Backup exists.
func backUp(t *testing.T, stack *env.Env, user, namespace, name string) *oadpv1alpha1.NonAdminBackup {
	t.Helper()
	require.NoError(t, stack.CreateTenant(t.Context(), namespace, user))
	tenant := clientOf(t, stack, user)
	nab := &oadpv1alpha1.NonAdminBackup{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec:       oadpv1alpha1.NonAdminBackupSpec{BackupSpec: &velerov1.BackupSpec{}},
	}
	require.NoError(t, tenant.Create(t.Context(), nab))
	eventually.Succeeds(t, patience, func() error {
		err := tenant.Get(t.Context(), client.ObjectKeyFromObject(nab), nab)
		if err == nil && nab.Status.Phase != oadpv1alpha1.NonAdminPhaseCreated {
			err = fmt.Errorf("%s/%s: %+v", namespace, name, nab.Status)
		}
		return err
	})
	return nab
}
