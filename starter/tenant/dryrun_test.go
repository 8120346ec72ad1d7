package tenant_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"holdfast.dev/holdfast/starter/tenant"
)

const nowhere = `{apiVersion: v1, kind: Config, current-context: a, contexts: [{name: a, context: {cluster: a, user: a, namespace: shop}}],
clusters: [{name: a, cluster: {server: "https://127.0.0.1:1"}}], users: [{name: a, user: {token: a}}]}`

// A dry run of the client's prints what would be sent, and sends nothing.
func TestWhatIsCreatedIsWhatAPersonWouldWrite(t *testing.T) {
	t.Parallel()
	kubeconfig := filepath.Join(t.TempDir(), "config")
	require.NoError(t, os.WriteFile(kubeconfig, []byte(nowhere), 0o600))
	long := strings.Repeat("a", 56) + "." + strings.Repeat("b", 100)
	const head = "apiVersion: oadp.openshift.io/v1alpha1\nkind: NonAdminBackup\nmetadata:\n  name: a\n  namespace: shop\nspec:\n  backupSpec:"
	for args, want := range map[string]string{
		"backup create a -o yaml": head + " {}\n",
		"backup create a -o yaml -l a=0s --storage-location 0s": head +
			"\n    labelSelector:\n      matchLabels:\n        a: 0s\n    storageLocation: 0s\n",
		"backup create a -o yaml --ttl 24h --snapshot-volumes=false": head + "\n    snapshotVolumes: false\n    ttl: 24h0m0s\n",
		"backup create 0s":                             "nonadminbackup.oadp.openshift.io/0s created (client dry run)\n",
		"restore create --from-backup nightly":         "nonadminrestore.oadp.openshift.io/nightly-… created (client dry run)\n",
		"restore create -o name --from-backup " + long: "nonadminrestore.oadp.openshift.io/" + strings.Repeat("a", 56) + "-…\n",
	} {
		t.Run(args, func(t *testing.T) {
			t.Parallel()
			streams, _, out, said := genericiooptions.NewTestIOStreams()
			status := tenant.Run(t.Context(), streams, append(strings.Fields(args), "--dry-run=client", "--kubeconfig", kubeconfig))
			assert.Equal(t, tenant.StatusGood, status, said)
			assert.Equal(t, want, out.String())
		})
	}
}
