package e2e_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
	"holdfast.dev/holdfast/k8s/kstatus"
	"holdfast.dev/holdfast/workflows/contract"
)

type nadr = oadpv1alpha1.NonAdminDownloadRequest

// request creates a NonAdminDownloadRequest as the tenant, as the command line does: the API server completes the name.
func (x *tenant) request(kind velerov1.DownloadTargetKind, of string) *nadr {
	x.t.Helper()
	made := &nadr{
		ObjectMeta: metav1.ObjectMeta{Namespace: x.namespace, GenerateName: "wanted-"},
		Spec:       oadpv1alpha1.NonAdminDownloadRequestSpec{Target: velerov1.DownloadTarget{Kind: kind, Name: of}},
	}
	require.NoError(x.t, x.client.Create(x.t.Context(), made))
	return made
}

func (x *tenant) awaitDownload(request *nadr, want string, ok func(*nadr) bool) *nadr {
	x.t.Helper()
	seen := &nadr{}
	awaitSuccess(x.t, func(ctx context.Context) error {
		now := &nadr{}
		if err := x.client.Get(ctx, client.ObjectKeyFromObject(request), now); err != nil {
			return err
		}
		seen = now
		if ok(now) {
			return nil
		}
		status, _ := json.Marshal(now.Status.Conditions) // not all of it: the URL is secret
		return fmt.Errorf("%s/%s: must be %q, phase %s, conditions %s", request.Namespace, request.Name, want, now.Status.Phase, status)
	})
	return seen
}

// awaitURL waits for the URL of what a request asks for now. Nobody but the request's status may ever show it: checkSecrets.
func (x *tenant) awaitURL(request *nadr) *nadr {
	x.t.Helper()
	seen := x.awaitDownload(request, "Processed", func(now *nadr) bool {
		processed := downloadCondition(now)
		return processed.Type == string(oadpv1alpha1.NonAdminConditionProcessed) && processed.Status == metav1.ConditionTrue &&
			processed.ObservedGeneration == now.Generation &&
			meta.IsStatusConditionTrue(now.Status.Conditions, kstatus.ConditionComplete)
	})
	keepSignature(x.t, seen.Status.VeleroDownloadRequest.Status.DownloadURL)
	return seen
}

func keepSignature(t *testing.T, address string) {
	t.Helper()
	signed, err := url.Parse(address)
	require.NoError(t, err)
	signature := signed.Query().Get("X-Amz-Signature")
	require.Len(t, signature, 64)
	keepSecret(signature)
}

// awaitRefusal waits until a request says that its file cannot be had, and why.
func (x *tenant) awaitRefusal(request *nadr, kind oadpv1alpha1.NonAdminCondition, text string) *nadr {
	x.t.Helper()
	return x.awaitDownload(request, "refused: "+text, func(now *nadr) bool {
		only := downloadCondition(now)
		return now.Status.Phase == oadpv1alpha1.NonAdminPhaseBackingOff && only.Type == string(kind) &&
			only.Status == metav1.ConditionTrue && only.Reason == oadpv1alpha1.ReasonDownloadError &&
			bytes.Contains([]byte(only.Message), []byte(text)) && now.Status.VeleroDownloadRequest.Status == nil
	})
}

// downloadCondition is the one condition that a request has at a time, besides those that sum it up.
func downloadCondition(request *nadr) metav1.Condition {
	only := kstatus.Others(request.Status.Conditions)
	if len(only) != 1 {
		return metav1.Condition{}
	}
	return only[0]
}

// awaitOver waits until neither the request nor what was made for it is there, and for the end of its workflow.
func (x *tenant) awaitOver(request *nadr) {
	x.t.Helper()
	awaitAllGone(x.t, request, &velerov1.DownloadRequest{ObjectMeta: inOADP("nadr-" + string(request.UID))})
	ref := contract.ObjectRef{Namespace: request.Namespace, Name: request.Name, UID: string(request.UID)}
	awaitCompleted(x.t, contract.WorkflowID(stack.ClusterID(), contract.KindDownload, ref))
}

func (x *tenant) drop(request *nadr) {
	x.t.Helper()
	require.NoError(x.t, x.client.Delete(x.t.Context(), request.DeepCopy()))
	x.awaitOver(request)
}

// fetch gets what a signed URL gives to anybody, over the network.
func fetch(t *testing.T, signed *nadr) (int, []byte) {
	t.Helper()
	address := signed.Status.VeleroDownloadRequest.Status.DownloadURL
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address, nil)
	require.NoError(t, err)
	answer, err := (&http.Client{Transport: &http.Transport{DisableCompression: true}}).Do(request)
	require.NoError(t, err)
	defer answer.Body.Close()
	assert.Empty(t, answer.Header.Get("Content-Encoding"), "clients unpack it themselves")
	content, err := io.ReadAll(answer.Body)
	require.NoError(t, err)
	return answer.StatusCode, content
}

func unpack(t *testing.T, content []byte) string {
	t.Helper()
	reader, err := gzip.NewReader(bytes.NewReader(content))
	require.NoError(t, err)
	plain, err := io.ReadAll(reader)
	require.NoError(t, err)
	return string(plain)
}

// keeper is a tenant with a backup in a location of its own.
type keeper struct {
	*tenant
	location *nabsl
	nab      *oadpv1alpha1.NonAdminBackup
}

func newKeeper(t *testing.T, user string) *keeper {
	t.Helper()
	x := newTenant(t, user)
	location := x.own(newAccount(t))
	x.awaitAvailable(location)
	return &keeper{tenant: x, location: location, nab: x.completedInto("nightly", "own")}
}
