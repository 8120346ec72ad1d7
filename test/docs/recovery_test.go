package docs_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	holdfastv1alpha1 "holdfast.dev/holdfast/k8s/api/holdfast/v1alpha1"
	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
	"holdfast.dev/holdfast/test/env"
	tenantsobjects "holdfast.dev/holdfast/test/tenants"
	"holdfast.dev/holdfast/workflows/workflowtest/sample"
)

const (
	recovery = "docs/recovery.md"
	byGuide  = itself + " TestEverythingComesBackByTheGuide"
	// keepUntil is long after the test.
	keepUntil = "2099-12-31T00:00:00Z"
)

// step is what the guide has below one heading.
type step struct {
	title  string
	blocks []block
}

// steps are those of a part of the guide, in order.
func steps(t *testing.T, part string) []step {
	t.Helper()
	var all []step
	for _, block := range readPage(t, recovery).blocks {
		if block.part != part || block.commands() == "" || block.mark.runBy != byGuide {
			continue
		}
		if len(all) == 0 || all[len(all)-1].title != block.section {
			all = append(all, step{title: block.section})
		}
		last := &all[len(all)-1]
		last.blocks = append(last.blocks, block)
	}
	return all
}

func TestTheGuideHasCommandsInEveryStep(t *testing.T) {
	assert.Len(t, steps(t, "Before"), 2)
	assert.Len(t, steps(t, "After"), 10)
}

// The cluster and Temporal are lost. By the guide's commands alone everything comes back from the buckets, and nothing is deleted.
func TestEverythingComesBackByTheGuide(t *testing.T) {
	sample.Case(t, false)
	r := newSurvivor(t)
	r.install()
	was := r.live()
	preparing := r.terminal(nil)
	r.follow(preparing, steps(t, "Before"), nil)
	brief := r.in(bank)
	brief.BackUpWith("brief", velerov1.BackupSpec{TTL: metav1.Duration{Duration: time.Minute}})
	brief.AwaitEnd("brief")
	r.awaitExpired("brief")

	was.backups = r.veleroBackups()
	require.NoError(t, r.Lose())
	was.files = r.files(was.account)

	sh := r.terminal(map[string]string{
		"KEEP_UNTIL": keepUntil, "TEMPORAL_NAMESPACE": "default", "TENANT_KUBECONFIG": r.Kubeconfig("alice"),
		"NAMESPACE": shop, "BACKUP": was.runs[2], "PLAN": nightly,
	})
	after := steps(t, "After")
	r.follow(sh, after[:len(after)-1], map[string]func() error{
		after[0].title: func() error { return r.NewCluster(t.Context()) },
		after[2].title: func() error { return r.NewVelero(t.Context(), "--disable-controllers=gc,backup-deletion") },
		after[5].title: func() error { return r.NewTemporal(t.Context()) },
	})
	r.in(shop).AwaitEnd("offsite") // in the tenant's own bucket
	t.Run("the tenants have what they had", func(t *testing.T) { r.tenantsHaveTheirs(t, was) })
	t.Run("plans continue", func(t *testing.T) { r.plansContinue(t, was) })
	t.Run("what was changed since it was approved is not approved now", func(t *testing.T) {
		assert.NoError(t, r.pending(t.Context(), bank, "vault"))
	})
	t.Run("nothing is gone", func(t *testing.T) {
		assert.Empty(t, without(was.backups, r.veleroBackups()), "of the Velero Backups")
		assert.Empty(t, without(was.files, r.files(was.account)), "of the files in the buckets")
	})
	r.follow(sh, after[len(after)-1:], nil)
	r.retentionGoesOn(was)
	t.Log("The way back, by " + recovery + ":\n" + strings.Join(r.took, "\n"))
}

// awaitExpired waits until a backup's time to live has passed. Velero's garbage collection, which comes once an hour, has not seen
// it.
func (r *survivor) awaitExpired(name string) {
	r.t.Helper()
	tenantsobjects.Await(r.t, func(ctx context.Context) error {
		made, err := r.veleroBackup(ctx, bank, name)
		if err == nil && (made.Status.Expiration == nil || time.Now().Before(made.Status.Expiration.Time)) {
			err = fmt.Errorf("it expires at %s", made.Status.Expiration)
		}
		return err
	})
}

func (r *survivor) tenantsHaveTheirs(t *testing.T, was *before) {
	space := &corev1.Namespace{}
	require.NoError(t, r.admin.Get(t.Context(), client.ObjectKey{Name: shop}, space))
	assert.Equal(t, "gold", space.Labels["tier"])
	assert.Equal(t, "alice", space.Annotations["example.com/owner"])
	alice, bob := r.in(shop), r.in(bank)
	assert.Equal(t, was.configs, alice.ConfigMaps(), "what the tenant restored")
	var list oadpv1alpha1.NonAdminBackupList
	require.NoError(t, alice.Tenant.List(t.Context(), &list, client.InNamespace(shop)), "the tenant has its rights")
	var names []string
	for _, each := range list.Items {
		names = append(names, each.Name)
	}
	assert.ElementsMatch(t, append([]string{was.left, was.kept, "offsite"}, was.runs...), names)
	require.NoError(t, bob.Tenant.Get(t.Context(), client.ObjectKey{Namespace: bank, Name: "brief"}, &oadpv1alpha1.NonAdminBackup{}))
	quota := r.terminal(nil).run("quota", "holdfast describe namespace shop --oadp-namespace openshift-adp")
	assert.Contains(t, quota, "maxStored:  6 of 40", "by the namespace's label and the policy")
}

// plansContinue: the backups count again for the plan that has made them, and for no other.
func (r *survivor) plansContinue(t *testing.T, was *before) {
	again := &holdfastv1alpha1.BackupPlan{}
	tenantsobjects.Await(t, func(ctx context.Context) error {
		err := r.admin.Get(ctx, client.ObjectKey{Namespace: shop, Name: nightly}, again)
		if retention := again.Status.Retention; err == nil && (retention == nil || len(retention.Kept) != 3) {
			err = fmt.Errorf("the plan does not have its backups: %+v", retention)
		}
		return err
	})
	assert.NotEqual(t, was.plan.UID, again.UID)
	assert.Equal(t, []types.UID{was.plan.UID}, again.Status.Continues)
	assert.Equal(t, was.runs[2], again.Status.LastGood.Name)
	assert.Equal(t, was.plan.Status.Counts, again.Status.Counts, "no run is made up, none is counted twice")
	assert.Equal(t, was.runs[:1], again.Status.Held)
	assert.Contains(t, again.Status.Retention.Kept[2].By, "hold")
	assert.Empty(t, again.Status.Retention.Due)

	other := &holdfastv1alpha1.BackupPlan{}
	require.NoError(t, r.admin.Get(t.Context(), client.ObjectKey{Namespace: shop, Name: retired}, other))
	require.NotNil(t, other.Status.LastGood)
	assert.Equal(t, was.kept, other.Status.LastGood.Name)
	require.Len(t, other.Status.Retention.Blocked, 1)
	assert.Equal(t, was.left, other.Status.Retention.Blocked[0].Name, "the plan that has made it was deleted: nobody deletes it")
}

// retentionGoesOn: the guide's last command has made a run, so the oldest that nothing keeps goes, and nothing else does.
func (r *survivor) retentionGoesOn(was *before) {
	r.t.Helper()
	gone := was.runs[1]
	r.runNow(nightly) // the fifth: the second is not among the newest three any more
	r.in(shop).AwaitGone(gone)
	assert.Equal(r.t, []string{was.second}, without(was.backups, r.veleroBackups()), "of the Velero Backups one is deleted")
	for _, key := range without(was.files, r.files(was.account)) {
		assert.Contains(r.t, key, "/"+was.second+"/", "and of the files its own")
	}
	for _, name := range []string{was.runs[0], was.runs[2], was.left, was.kept, "offsite"} {
		require.NoError(r.t, r.admin.Get(r.t.Context(), client.ObjectKey{Namespace: shop, Name: name}, &oadpv1alpha1.NonAdminBackup{}))
	}
	brief, err := r.veleroBackup(r.t.Context(), bank, "brief")
	require.NoError(r.t, err)
	assert.Equal(r.t, velerov1.BackupPhaseCompleted, brief.Status.Phase, "what had expired stays, for tenants to see")
}

// without are the keys that are not among others.
func without(keys, others map[string]bool) []string {
	return slices.Sorted(func(yield func(string) bool) {
		for key := range maps.Keys(keys) {
			if !others[key] && !yield(key) {
				return
			}
		}
	})
}

// veleroBackup is the Velero Backup of a NonAdminBackup.
func (r *survivor) veleroBackup(ctx context.Context, namespace, name string) (*velerov1.Backup, error) {
	nab, made := &oadpv1alpha1.NonAdminBackup{}, &velerov1.Backup{}
	if err := r.admin.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, nab); err != nil {
		return nil, err
	}
	if nab.Status.VeleroBackup == nil {
		return nil, errors.New("there is no Velero Backup yet")
	}
	return made, r.admin.Get(ctx, client.ObjectKey{Namespace: env.OADPNamespace, Name: nab.Status.VeleroBackup.NACUUID}, made)
}
