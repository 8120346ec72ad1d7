package outage_test

import (
	"context"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
	"holdfast.dev/holdfast/test/env"
)

var downloadScenarios = []scenario{
	{
		name: "download a log",
		before: func(c *testCase) {
			approved(c)
			c.backUpInto("own")
			c.await("Completed", c.completed)
		},
		act: func(c *testCase) {
			c.askForLog()
			c.await("a URL", c.answered)
			require.NoError(c.t, c.admin.Delete(c.t.Context(), c.nadr.DeepCopy()))
		},
		want: "gone, and the URL too",
		done: (*testCase).downloadGone,
		check: func(c *testCase, e effects) {
			assert.Equal(c.t, 1, occurrencesOf(e.Writes, "create downloadrequests nadr-UUID"))
			assert.Equal(c.t, 1, occurrencesOf(e.Writes, "delete downloadrequests nadr-UUID"))
			assert.Zero(c.t, occurrencesOf(e.Writes, "delete nonadmindownloadrequests log"), "the tenant has done that")
		},
		sample:    []string{"watcher before signal"},
		recorded:  []string{"temporal before local remove-download"},
		rolledOut: []string{"before local refresh-download"},
	},
}

// askForLog creates the case's NonAdminDownloadRequest.
func (c *testCase) askForLog() {
	c.t.Helper()
	c.nadr = &oadpv1alpha1.NonAdminDownloadRequest{
		ObjectMeta: metav1.ObjectMeta{Namespace: c.namespace, Name: "log"},
		Spec: oadpv1alpha1.NonAdminDownloadRequestSpec{
			Target: velerov1.DownloadTarget{Kind: velerov1.DownloadTargetKindBackupLog, Name: c.nab.Name},
		},
	}
	require.NoError(c.t, c.admin.Create(c.t.Context(), c.nadr))
}

// veleroDownload reads what was made for the case's request.
func (c *testCase) veleroDownload() (*velerov1.DownloadRequest, error) {
	made := &velerov1.DownloadRequest{}
	err := c.admin.Get(context.Background(), client.ObjectKey{Namespace: env.OADPNamespace, Name: c.veleroDownloadName()}, made)
	return made, err
}

// veleroDownloadName is its name, empty if the case has no request.
func (c *testCase) veleroDownloadName() string {
	if c.nadr == nil {
		return ""
	}
	return "nadr-" + string(c.nadr.UID)
}

// answered reports whether the request has the URL that Velero has signed for it.
func (c *testCase) answered() bool {
	made, err := c.veleroDownload()
	now := &oadpv1alpha1.NonAdminDownloadRequest{}
	if err != nil || c.admin.Get(context.Background(), client.ObjectKeyFromObject(c.nadr), now) != nil {
		return false
	}
	answer := now.Status.VeleroDownloadRequest.Status
	return now.Status.Phase == oadpv1alpha1.NonAdminPhaseCreated && answer != nil && answer.DownloadURL != "" &&
		answer.DownloadURL == made.Status.DownloadURL
}

func (c *testCase) downloadGone() bool {
	_, err := c.veleroDownload()
	gone := c.admin.Get(context.Background(), client.ObjectKeyFromObject(c.nadr), &oadpv1alpha1.NonAdminDownloadRequest{})
	return apierrors.IsNotFound(err) && apierrors.IsNotFound(gone)
}
