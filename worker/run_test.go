package main

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"holdfast.dev/holdfast/k8s/process"
)

func TestTheWorkerManagesTheFieldsThatItWrites(t *testing.T) {
	var managers []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		managers = append(managers, r.Method+" "+r.URL.Path+" "+r.URL.Query().Get("fieldManager"))
		w.Header().Set("Content-Type", "application/json")
		_, err := w.Write([]byte(`{"apiVersion":"v1","kind":"PersistentVolume","metadata":{"name":"v"}}`))
		assert.NoError(t, err)
	}))
	defer server.Close()
	path := filepath.Join(t.TempDir(), "kubeconfig")
	require.NoError(t, os.WriteFile(path, []byte(`{"apiVersion":"v1","kind":"Config","current-context":"c",
		"clusters":[{"name":"c","cluster":{"server":"`+server.URL+`"}}],
		"contexts":[{"name":"c","context":{"cluster":"c"}}]}`), 0o600))
	cluster, err := connectKube(t.Context(), &workerFlags{Flags: process.Flags{Kubeconfig: path, OADPNamespace: "openshift-adp"}})
	require.NoError(t, err)

	volume := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "v"}}
	nothing := client.RawPatch("application/merge-patch+json", []byte(`{}`))
	require.NoError(t, cluster.client.Create(t.Context(), volume))
	require.NoError(t, cluster.client.Update(t.Context(), volume))
	require.NoError(t, cluster.client.Patch(t.Context(), volume, nothing))
	require.NoError(t, cluster.client.Status().Patch(t.Context(), volume, nothing))
	assert.Equal(t, []string{
		"POST /api/v1/persistentvolumes holdfast-worker", "PUT /api/v1/persistentvolumes/v holdfast-worker",
		"PATCH /api/v1/persistentvolumes/v holdfast-worker", "PATCH /api/v1/persistentvolumes/v/status holdfast-worker",
	}, managers)
}
