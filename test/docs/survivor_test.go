package docs_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	holdfastv1alpha1 "holdfast.dev/holdfast/k8s/api/holdfast/v1alpha1"
	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
	"holdfast.dev/holdfast/test/env"
	tenantsobjects "holdfast.dev/holdfast/test/tenants"
)

// The tenants, and what they have.
const (
	shop, bank = "shop", "bank"
	nightly    = "nightly"
	retired    = "retired"
)

var users = map[string]string{shop: "alice", bank: "bob"}

// survivor is an administrator who loses a cluster and Temporal, and has the buckets, a kubeconfig and these folders.
type survivor struct {
	*reader
	t       *testing.T
	admin   client.Client
	overlay string
	// velero is the generation of Velero's Deployment that runs.
	velero int64
	// took is how long each step took.
	took []string
}

func newSurvivor(t *testing.T) *survivor {
	t.Helper()
	r := &survivor{reader: newReader(t), t: t}
	r.overlay = filepath.Join(r.folder, "overlay")
	var err error
	r.admin, err = r.UserClient(env.Admin)
	require.NoError(t, err)
	require.NoError(t, os.Mkdir(r.overlay, 0o700))
	text := fmt.Sprintf(`apiVersion: kustomize.config.k8s.io/v1beta1
kind: Kustomization
resources: [../deploy/base]
namespace: %s
images: [{name: registry.invalid/holdfast, newName: %s, newTag: v0.1.0}]
configMapGenerator:
  - name: holdfast
    behavior: merge
    literals: [HOLDFAST_CLUSTER_ID=%s, TEMPORAL_ADDRESS=%s]
`, env.OADPNamespace, image, r.ClusterID(), r.TemporalAddress())
	r.write(t, "overlay/kustomization.yaml", text+r.local(t))
	return r
}

// in is a tenant's namespace.
func (r *survivor) in(namespace string) *tenantsobjects.Namespace {
	r.t.Helper()
	return tenantsobjects.Of(r.t, r.Env, namespace, users[namespace])
}

// terminal opens a shell with the variables that the guide declares.
func (r *survivor) terminal(variables map[string]string) *terminal {
	environment := append(r.environment(r.t, env.Admin), "OVERLAY="+r.overlay, "SAMPLES="+filepath.Join(r.folder, "deploy", "samples"))
	for name, value := range variables {
		environment = append(environment, name+"="+value)
	}
	return openTerminal(r.t, r.folder, environment)
}

// follow runs the blocks of steps; before the step of a title in meanwhile it does what no command of the guide can.
func (r *survivor) follow(sh *terminal, all []step, meanwhile map[string]func() error) {
	for _, each := range all {
		begin := time.Now()
		if do := meanwhile[each.title]; do != nil {
			require.NoError(r.t, do(), each.title)
			r.velero = 0 // what is installed anew runs
		}
		for _, block := range each.blocks {
			sh.run(block.where, block.commands())
			r.rollOut()
		}
		r.took = append(r.took, fmt.Sprintf("%8.1f s  %s", time.Since(begin).Seconds(), each.title))
	}
}

// rollOut does what Kubernetes does when a Deployment changes, for Velero, which is no Pod here.
func (r *survivor) rollOut() {
	deployment := &appsv1.Deployment{}
	err := r.admin.Get(r.t.Context(), client.ObjectKey{Namespace: env.OADPNamespace, Name: "velero"}, deployment)
	if err != nil {
		return // not installed yet
	}
	if r.velero != 0 && deployment.Generation != r.velero {
		require.NoError(r.t, r.RolloutVelero(r.t.Context()))
	}
	r.velero = deployment.Generation
}

// before is what there was before the loss.
type before struct {
	account env.Account
	// runs are those of plan nightly, oldest first; the first one is held.
	runs []string
	// second is the name of the second one's Velero Backup.
	second string
	// left is the run of a plan that was deleted, and kept that of a later one of the same name.
	left, kept string
	plan       *holdfastv1alpha1.BackupPlan
	configs    map[string]map[string]string
	files      map[string]bool
	backups    map[string]bool
}

// install installs Holdfast as docs/install.md says, and the administrator's policy.
func (r *survivor) install() {
	r.terminal(nil).run("install", `kubectl apply --server-side -k "$OVERLAY"
kubectl apply -f "$SAMPLES/approver_binding.yaml"
kubectl -n openshift-adp wait --timeout=10m --for=create lease/holdfast-watcher`)
	require.NoError(r.t, r.admin.Create(r.t.Context(), &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: env.OADPNamespace, Name: "holdfast-policy"}, Data: map[string]string{
			"nonAdmin": "requireApprovalForBSL: true\nbackupSyncPeriod: 10s\n",
			"holdfast": "quotas:\n- namespaceSelector: {matchLabels: {tier: gold}}\n  maxStored: 40\n" +
				"- namespaceSelector: {}\n  maxStored: 2\n",
		},
	}))
}

// live is the time before the loss: two tenants, with locations, plans and backups.
func (r *survivor) live() *before {
	b := &before{}
	ctx := r.t.Context()
	alice := tenantsobjects.Make(r.t, r.Env, shop, users[shop], 3)
	bob := tenantsobjects.Make(r.t, r.Env, bank, users[bank], 0)
	space := &corev1.Namespace{}
	require.NoError(r.t, r.admin.Get(ctx, client.ObjectKey{Name: shop}, space))
	space.Labels["tier"], space.Annotations = "gold", map[string]string{"example.com/owner": "alice"}
	require.NoError(r.t, r.admin.Update(ctx, space))
	b.configs = alice.ConfigMaps()
	var err error
	b.account, err = r.CreateAccount(ctx, "lost-bucket")
	require.NoError(r.t, err)
	for name, in := range map[string]*tenantsobjects.Namespace{"own": alice, "vault": bob} {
		in.CreateLocation(name, b.account, func(spec *velerov1.BackupStorageLocationSpec) {
			second := &metav1.Duration{Duration: time.Second}
			spec.BackupSyncPeriod, spec.ValidationFrequency = second, second
		})
		tenantsobjects.Await(r.t, func(ctx context.Context) error { return r.pending(ctx, in.Name, name) })
		r.terminal(nil).run("approve", fmt.Sprintf("holdfast approve %s/%s --reason 'ticket 4711'", in.Name, name))
	}
	tenantsobjects.Await(r.t, r.available)
	r.patch(&oadpv1alpha1.NonAdminBackupStorageLocation{ObjectMeta: metav1.ObjectMeta{Namespace: bank, Name: "vault"}},
		`{"spec": {"backupStorageLocationSpec": {"objectStorage": {"prefix": "elsewhere"}}}}`)
	tenantsobjects.Await(r.t, func(ctx context.Context) error { return r.pending(ctx, bank, "vault") })

	r.plan(nightly, 3)
	for range 3 {
		b.runs = append(b.runs, r.runNow(nightly))
	}
	r.patch(&oadpv1alpha1.NonAdminBackup{ObjectMeta: metav1.ObjectMeta{Namespace: shop, Name: b.runs[0]}},
		`{"metadata": {"labels": {"holdfast.dev/hold": "true"}}}`)
	second, err := r.veleroBackup(ctx, shop, b.runs[1])
	require.NoError(r.t, err)
	b.second = second.Name
	b.left = r.planOf(retired)
	require.NoError(r.t, r.admin.Delete(ctx, &holdfastv1alpha1.BackupPlan{ObjectMeta: metav1.ObjectMeta{Namespace: shop, Name: retired}}))
	b.kept = r.planOf(retired)
	alice.BackUpWith("offsite", velerov1.BackupSpec{StorageLocation: "own"})
	alice.AwaitEnd("offsite")
	r.giveUp(alice, "givenup")
	b.plan = &holdfastv1alpha1.BackupPlan{}
	tenantsobjects.Await(r.t, func(ctx context.Context) error {
		err := r.admin.Get(ctx, client.ObjectKey{Namespace: shop, Name: nightly}, b.plan)
		if held := b.plan.Status.Held; err == nil && (len(held) != 1 || held[0] != b.runs[0]) {
			err = fmt.Errorf("held are %v", held)
		}
		return err
	})
	return b
}

// giveUp has a tenant delete a NonAdminBackup without its data. It must not come back.
func (r *survivor) giveUp(in *tenantsobjects.Namespace, name string) {
	r.t.Helper()
	in.BackUpWith(name, velerov1.BackupSpec{})
	nab := in.AwaitEnd(name)
	r.patch(nab, `{"spec": {"forceDeleteBackup": true}}`)
	in.AwaitGone(name)
}

func (r *survivor) patch(object client.Object, patch string) {
	r.t.Helper()
	require.NoError(r.t, r.admin.Patch(r.t.Context(), object, client.RawPatch(types.MergePatchType, []byte(patch))))
}

// pending returns nil if the location's approval request waits for a decision.
func (r *survivor) pending(ctx context.Context, namespace, name string) error {
	var list oadpv1alpha1.NonAdminBackupStorageLocationApprovalRequestList
	if err := r.admin.List(ctx, &list, client.InNamespace(env.OADPNamespace)); err != nil {
		return err
	}
	for _, each := range list.Items {
		request := each.Status.VeleroBackupStorageLocationApprovalRequest
		if request != nil && request.Namespace == namespace && request.Name == name && request.PendingSpec != nil {
			return nil
		}
	}
	return fmt.Errorf("%d requests, and none for %s/%s is pending", len(list.Items), namespace, name)
}

// available returns nil if Velero can use the shop's location.
func (r *survivor) available(ctx context.Context) error {
	location := &oadpv1alpha1.NonAdminBackupStorageLocation{}
	if err := r.admin.Get(ctx, client.ObjectKey{Namespace: shop, Name: "own"}, location); err != nil {
		return err
	}
	made := location.Status.VeleroBackupStorageLocation
	if made == nil || made.Status == nil || made.Status.Phase != velerov1.BackupStorageLocationPhaseAvailable {
		return fmt.Errorf("the location is not available: %+v", location.Status)
	}
	return nil
}

// planOf makes a plan that keeps its newest backup, and has it make one, whose name it returns.
func (r *survivor) planOf(name string) string {
	r.plan(name, 1)
	return r.runNow(name)
}

// plan makes a plan of the shop's that keeps the newest backups.
func (r *survivor) plan(name string, last int32) {
	r.t.Helper()
	require.NoError(r.t, r.admin.Create(r.t.Context(), &holdfastv1alpha1.BackupPlan{
		ObjectMeta: metav1.ObjectMeta{Namespace: shop, Name: name},
		Spec: holdfastv1alpha1.BackupPlanSpec{
			Schedule: "0 3 1 1 *",
			Template: holdfastv1alpha1.BackupTemplate{Spec: holdfastv1alpha1.BackupTemplateSpec{BackupSpec: &velerov1.BackupSpec{}}},
			Keep:     &holdfastv1alpha1.Keep{Last: last},
		},
	}))
}

// runNow has a plan make a backup, and returns its name when it is good and recorded.
func (r *survivor) runNow(plan string) string {
	r.t.Helper()
	value := fmt.Sprint(time.Now().UnixNano())
	object := &holdfastv1alpha1.BackupPlan{ObjectMeta: metav1.ObjectMeta{Namespace: shop, Name: plan}}
	r.patch(object, fmt.Sprintf(`{"metadata": {"annotations": {"holdfast.dev/run-now": %q}}}`, value))
	tenantsobjects.Await(r.t, func(ctx context.Context) error {
		if err := r.admin.Get(ctx, client.ObjectKeyFromObject(object), object); err != nil {
			return err
		}
		status := &object.Status
		if status.HandledRunNow != value || status.LastRun == nil || status.LastGood == nil || status.LastGood.Name != status.LastRun.Name {
			return fmt.Errorf("handled %s, last run %+v, last good %+v", status.HandledRunNow, status.LastRun, status.LastGood)
		}
		made, err := r.veleroBackup(ctx, shop, status.LastRun.Name)
		if err == nil && made.Labels[holdfastv1alpha1.LabelRecordedPlan] != string(object.UID) {
			err = errors.New("the backup is not recorded")
		}
		return err
	})
	return object.Status.LastRun.Name
}

// veleroBackups are the names of the Velero Backups.
func (r *survivor) veleroBackups() map[string]bool {
	r.t.Helper()
	var list velerov1.BackupList
	require.NoError(r.t, r.admin.List(r.t.Context(), &list, client.InNamespace(env.OADPNamespace)))
	names := map[string]bool{}
	for _, each := range list.Items {
		names[each.Name] = true
	}
	return names
}

// files are the keys of all objects in the administrator's bucket and in an account's.
func (r *survivor) files(account env.Account) map[string]bool {
	r.t.Helper()
	files := map[string]bool{}
	ours, err := r.Objects("")
	require.NoError(r.t, err)
	theirs, err := r.BucketObjects(account, "")
	require.NoError(r.t, err)
	for _, each := range ours {
		files[r.Storage().Bucket+"/"+each.Key] = true
	}
	for _, each := range theirs {
		files[account.Bucket+"/"+each.Key] = true
	}
	return files
}
