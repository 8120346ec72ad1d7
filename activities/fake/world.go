package fake

import (
	"context"
	"errors"
	"reflect"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"holdfast.dev/holdfast/activities"
	"holdfast.dev/holdfast/activities/backup"
	"holdfast.dev/holdfast/activities/buckets"
	"holdfast.dev/holdfast/activities/location"
	"holdfast.dev/holdfast/activities/restore"
	"holdfast.dev/holdfast/k8s"
	holdfastv1alpha1 "holdfast.dev/holdfast/k8s/api/holdfast/v1alpha1"
	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
	"holdfast.dev/holdfast/k8s/owner"
	"holdfast.dev/holdfast/k8s/policy"
	"holdfast.dev/holdfast/k8s/policy/restorespec"
	"holdfast.dev/holdfast/k8s/velero"
	"holdfast.dev/holdfast/workflows/contract"
)

// Names that every World uses.
const (
	Cluster       = "test"
	OADPNamespace = "openshift-adp"
	Namespace     = "team"
)

// scheme is built once: it takes longer than most tests.
var scheme = sync.OnceValue(k8s.Scheme)

// World is a cluster in memory.
type World struct {
	t         *testing.T
	Client    client.WithWatch
	Backups   *backup.Activities
	Restores  *restore.Activities
	Buckets   *buckets.Buckets
	Locations *location.Activities
	Events    chan string
	// Policy is the admin's policy; PolicyErr stands for one that cannot be read.
	Policy    policy.Policy
	PolicyErr error
	// Allowed is what may come back from tenants' storage locations.
	Allowed Allowlist
	// Bucket, if set, is a folder that stands for the bucket of every tenant's location.
	Bucket string
	// Sign, if set, answers DownloadRequests with a URL, as Velero does.
	Sign func(*velerov1.DownloadRequest) string
	// Refusal, if set, answers DownloadRequests with phase Failed and this message, as Velero is to do after 1.18.
	Refusal string
	// OADPsCRDs: OADP's CRDs are installed, whose status has none of the fields that are Holdfast's own.
	OADPsCRDs bool

	cluster activities.Cluster

	mutex    sync.Mutex
	fail     func(verb string, object client.Object) error
	lose     func(verb string, object client.Object) error
	failRead func(object runtime.Object) error
	writes   []string
}

// New returns a world with the tenant's namespace and the given objects.
func New(t *testing.T, objects ...client.Object) *World {
	t.Helper()
	w := &World{t: t, Allowed: Allowlist{Resources: []restorespec.Served{
		{GroupResource: schema.GroupResource{Resource: "configmaps"}, Kind: "ConfigMap", Versions: []string{"v1"}},
	}}}
	recorder := events.NewFakeRecorder(1000)
	w.Events = recorder.Events
	base := fake.NewClientBuilder().WithScheme(scheme()).WithObjectTracker(newGenerations()).
		WithObjects(withNamespace(objects)...).
		WithStatusSubresource(tenants(scheme())...).Build()
	w.Client = interceptor.NewClient(base, w.interceptors())
	w.Buckets = w.buckets(recorder)
	w.cluster = activities.Cluster{Client: w.Client, Events: recorder, Paused: func() error { return nil }}
	w.Backups = &backup.Activities{
		Cluster: w.cluster,
		Gatherer: &backup.Gatherer{
			Reader: w.Client, Policy: source{w}, ClusterID: Cluster, OADPNamespace: OADPNamespace,
		},
		Buckets: w.Buckets,
	}
	w.Restores = &restore.Activities{
		Cluster: w.cluster,
		Gatherer: &restore.Gatherer{
			Reader: w.Client, Policy: source{w}, ClusterID: Cluster, OADPNamespace: OADPNamespace,
			Allowlists: &w.Allowed,
		},
		Buckets: w.Buckets,
	}
	w.Locations = &location.Activities{
		Cluster: w.cluster,
		Gatherer: &location.Gatherer{
			Reader: w.Client, Policy: source{w}, ClusterID: Cluster, OADPNamespace: OADPNamespace, ReadSecrets: true,
		},
		DecisionsOff: func() error { return nil },
		Identity:     identity,
	}
	return w
}

// withNamespace adds the tenant's namespace where a test does not bring its own.
// tenants are empty objects of the kinds that tenants have.
func tenants(scheme *runtime.Scheme) (kinds []client.Object) {
	for _, version := range []schema.GroupVersion{oadpv1alpha1.GroupVersion, holdfastv1alpha1.GroupVersion} {
		for _, kind := range scheme.KnownTypes(version) {
			if object, is := reflect.New(kind).Interface().(client.Object); is {
				kinds = append(kinds, object)
			}
		}
	}
	return kinds
}

func withNamespace(objects []client.Object) []client.Object {
	for _, object := range objects {
		if _, ok := object.(*corev1.Namespace); ok {
			return objects
		}
	}
	return append([]client.Object{&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		Name: Namespace, Finalizers: []string{"kubernetes"}, // a deletion marks it
	}}}, objects...)
}

type source struct{ w *World }

// Get implements policy.Getter.
func (s source) Get(context.Context) (policy.Policy, error) { return s.w.Policy, s.w.PolicyErr }

// Fail calls decide before every write; its error is the API server's answer. nil ends it.
func (w *World) Fail(decide func(verb string, object client.Object) error) {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	w.fail = decide
}

// Lose calls decide after every write; its error is what the writer receives instead of the answer. nil ends it.
func (w *World) Lose(decide func(verb string, object client.Object) error) {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	w.lose = decide
}

// FailReads calls decide before every read, of an object or a list; its error is the API server's answer. nil ends it.
func (w *World) FailReads(decide func(object runtime.Object) error) {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	w.failRead = decide
}

func (w *World) read(object runtime.Object) error {
	w.mutex.Lock()
	fail := w.failRead
	w.mutex.Unlock()
	if fail == nil {
		return nil
	}
	return fail(object)
}

// Writes returns the writes that got through, as "verb Kind".
func (w *World) Writes() []string {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	return append([]string(nil), w.writes...)
}

func (w *World) write(verb string, object client.Object, do func() error) error {
	w.mutex.Lock()
	fail, lose := w.fail, w.lose
	w.mutex.Unlock()
	if fail != nil {
		if err := fail(verb, object); err != nil {
			return err
		}
	}
	if err := do(); err != nil {
		return err
	}
	kind, _ := apiutil.GVKForObject(object, scheme()) // of mere metadata too
	w.mutex.Lock()
	w.writes = append(w.writes, verb+" "+kind.Kind)
	w.mutex.Unlock()
	if lose != nil {
		return lose(verb, object)
	}
	return nil
}

// NAB returns a NonAdminBackup that is not in the world yet.
func NAB(name string) *oadpv1alpha1.NonAdminBackup {
	return &oadpv1alpha1.NonAdminBackup{
		ObjectMeta: metav1.ObjectMeta{Namespace: Namespace, Name: name, UID: types.UID("uid-" + name), Generation: 1},
		Spec:       oadpv1alpha1.NonAdminBackupSpec{BackupSpec: &velerov1.BackupSpec{}},
	}
}

// Ref names the object of NAB(name).
func Ref(name string) contract.ObjectRef {
	return contract.ObjectRef{Namespace: Namespace, Name: name, UID: "uid-" + name}
}

// VeleroName is the name of the Velero Backup of NAB(name).
func VeleroName(name string) string { return owner.NACUUID(Cluster, Namespace, name, "uid-"+name) }

// Read returns the NonAdminBackup of that name, nil if there is none.
func (w *World) Read(name string) *oadpv1alpha1.NonAdminBackup {
	nab := &oadpv1alpha1.NonAdminBackup{}
	return got(w, types.NamespacedName{Namespace: Namespace, Name: name}, nab)
}

// Velero returns the Velero Backup of that name, nil if there is none.
func (w *World) Velero(name string) *velerov1.Backup {
	return got(w, types.NamespacedName{Namespace: OADPNamespace, Name: name}, &velerov1.Backup{})
}

func got[T client.Object](w *World, key types.NamespacedName, object T) T {
	err := w.Client.Get(context.Background(), key, object)
	if apierrors.IsNotFound(err) {
		var none T
		return none
	}
	require.NoError(w.t, err)
	return object
}

// Requests returns the DeleteBackupRequests.
func (w *World) Requests() []velerov1.DeleteBackupRequest {
	var list velerov1.DeleteBackupRequestList
	require.NoError(w.t, w.Client.List(context.Background(), &list, client.InNamespace(OADPNamespace)))
	return list.Items
}

// EditSpec changes the spec as a user does: the generation grows.
func (w *World) EditSpec(name string, edit func(*oadpv1alpha1.NonAdminBackupSpec)) {
	nab := w.Read(name)
	edit(&nab.Spec)
	nab.Generation++
	require.NoError(w.t, w.Client.Update(context.Background(), nab))
}

// SetVelero changes a Velero Backup's status as Velero does.
func (w *World) SetVelero(name string, phase velerov1.BackupPhase) {
	made := w.Velero(name)
	require.NotNil(w.t, made, "no Velero Backup %s", name)
	now := metav1.Now()
	made.Status.Phase = phase
	if phase != velerov1.BackupPhaseQueued && made.Status.StartTimestamp == nil {
		made.Status.StartTimestamp = &now
	}
	if velero.Finished(phase) {
		made.Status.CompletionTimestamp = &now
	}
	require.NoError(w.t, w.Client.Update(context.Background(), made))
}

// AnswerRequests answers every DeleteBackupRequest as Velero does: with an error, or, if it is empty, by deleting the
// Backup and the requests.
func (w *World) AnswerRequests(refusal string) {
	for _, request := range w.Requests() {
		if refusal != "" {
			request.Status.Phase = velerov1.DeleteBackupRequestPhaseProcessed
			request.Status.Errors = []string{refusal}
			require.NoError(w.t, w.Client.Update(context.Background(), &request))
			continue
		}
		made := w.Velero(request.Spec.BackupName)
		if made != nil {
			require.NotNil(w.t, made.Status.StartTimestamp, "Velero refuses to delete a backup that has no storage location yet")
			require.NoError(w.t, w.Client.Delete(context.Background(), made))
		}
		require.NoError(w.t, w.Client.Delete(context.Background(), &request))
	}
}

// ErrAway is an API server that does not answer.
var ErrAway = errors.New("connection refused")
