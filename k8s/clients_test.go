package k8s_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	velerov2alpha1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v2alpha1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"holdfast.dev/holdfast/k8s"
	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
)

func TestTheSchemeKnowsEveryTypeThatIsReadOrWritten(t *testing.T) {
	scheme := k8s.Scheme()
	for _, object := range []runtime.Object{
		&corev1.Namespace{}, &oadpv1alpha1.NonAdminBackup{}, &velerov1.Backup{}, &velerov1.DeleteBackupRequest{},
		&velerov1.PodVolumeBackup{}, &velerov2alpha1.DataUpload{},
	} {
		kinds, _, err := scheme.ObjectKinds(object)
		require.NoError(t, err)
		assert.Len(t, kinds, 1)
	}
}

func TestTheKubeconfigIsLoadedWithTheLimitsAskedFor(t *testing.T) {
	path := filepath.Join(t.TempDir(), "config")
	require.NoError(t, os.WriteFile(path, []byte(`
apiVersion: v1
kind: Config
clusters: [{name: c, cluster: {server: "https://127.0.0.1:6443"}}]
users: [{name: u, user: {}}]
contexts: [{name: x, context: {cluster: c, user: u}}]
current-context: x
`), 0o600))
	config, err := k8s.RESTConfig(path, "holdfast-test", 50, 70)
	require.NoError(t, err)
	assert.Equal(t, "https://127.0.0.1:6443", config.Host)
	assert.Equal(t, "holdfast-test", config.UserAgent)
	assert.InDelta(t, 50, config.QPS, 0)
	assert.Equal(t, 70, config.Burst)

	_, err = k8s.RESTConfig(path+".missing", "holdfast-test", 50, 70)
	assert.ErrorContains(t, err, "load kubeconfig")
}
