package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
	"holdfast.dev/holdfast/k8s/owner"
	"holdfast.dev/holdfast/k8s/velero"
	"holdfast.dev/holdfast/test/env"
)

const (
	// largeBytes is the size of a large object: three times it would be more than etcd takes, and once is what a client may send
	// with room for what is added.
	largeBytes = 900_000
	// annotationBytes is what the API server takes as all annotations of an object, less room for the others.
	annotationBytes = 250 << 10
)

// models are backups that the API server has accepted, to be copied. The watchers and the worker are stopped then.
type models struct {
	ordinary *model
	// large are the ways in which a backup is large, in their turn.
	large []*oadpv1alpha1.NonAdminBackup
	// dense is one that takes far more memory than its JSON: thirteen times as much where it is read, and more in the API server.
	dense *oadpv1alpha1.NonAdminBackup
}

// denseShare: one of so many large ones is dense.
const denseShare = 50

func (m *models) pick(i int) *oadpv1alpha1.NonAdminBackup {
	if i%denseShare == 0 {
		return m.dense
	}
	return m.large[i%len(m.large)]
}

// many returns names of resources whose JSON takes so many bytes. Each becomes a string of its own in memory.
func many(bytes int) []string {
	const name = "widgets.of.tenants.example"
	return strings.Split(strings.Repeat(name+",", bytes/(len(name)+len(`"",`)))+name, ",")
}

// manySelectors returns empty selectors whose JSON takes so many bytes.
func manySelectors(bytes int) []*metav1.LabelSelector {
	return slices.Repeat([]*metav1.LabelSelector{{}}, bytes/len(`{},`))
}

// makeModels has Holdfast bring an ordinary backup to its end and refuse one whose spec is too large. Then, as anybody can
// who may write a status, it makes one large in its status, and one in its annotations too. Unless large it makes the ordinary
// one alone.
func (r *rig) makeModels(ctx context.Context, large bool) (*models, error) {
	if !large {
		ordinary, err := r.modelBackup(ctx)
		return &models{ordinary: ordinary}, errors.Join(err, r.stack.Component(env.Worker).Stop())
	}
	largeSpec, err := r.refusedBackup(ctx, "refused", &velerov1.BackupSpec{IncludedResources: many(largeBytes)})
	if err != nil {
		return nil, err
	}
	dense, err := r.refusedBackup(ctx, "refused-dense", &velerov1.BackupSpec{OrLabelSelectors: manySelectors(largeBytes)})
	if err != nil {
		return nil, err
	}
	ordinary, err := r.modelBackup(ctx) // stops the watcher
	if err != nil {
		return nil, err
	}
	if err := r.stack.Component(env.Worker).Stop(); err != nil {
		return nil, err
	}
	largeStatus := ordinary.nab.DeepCopy()
	largeStatus.Status.VeleroBackup.Spec.IncludedResources = many(largeBytes)
	if err := r.client.Status().Update(ctx, largeStatus); err != nil {
		return nil, fmt.Errorf("write a status of %d bytes: %w", largeBytes, err)
	}
	largeAnnotation := largeStatus.DeepCopy()
	largeAnnotation.Status.VeleroBackup.Spec.IncludedResources = many(largeBytes - annotationBytes)
	if err := r.client.Status().Update(ctx, largeAnnotation); err != nil {
		return nil, err
	}
	metav1.SetMetaDataAnnotation(&largeAnnotation.ObjectMeta, "example.com/note", strings.Repeat("x", annotationBytes))
	if err := r.client.Update(ctx, largeAnnotation); err != nil {
		return nil, fmt.Errorf("write annotations of %d bytes: %w", annotationBytes, err)
	}
	all := []*oadpv1alpha1.NonAdminBackup{largeSpec, largeStatus, largeSpec, largeAnnotation}
	return &models{ordinary: ordinary, large: all, dense: dense}, nil
}

// refusedBackup returns a backup that Holdfast has refused for its spec.
func (r *rig) refusedBackup(ctx context.Context, name string, spec *velerov1.BackupSpec) (*oadpv1alpha1.NonAdminBackup, error) {
	key := types.NamespacedName{Namespace: namespaceName(0), Name: name}
	if err := r.client.Create(ctx, newBackup(key, spec)); err != nil {
		return nil, fmt.Errorf("create a backup of %d bytes: %w", sizeOf(spec), err)
	}
	for {
		nab := &oadpv1alpha1.NonAdminBackup{}
		if err := r.client.Get(ctx, key, nab); err != nil {
			return nil, err
		}
		if nab.Status.Phase == oadpv1alpha1.NonAdminPhaseBackingOff {
			return nab, nil
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("%s is not refused: %w", key, ctx.Err())
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// copyOf returns a model's copy under another name, as an incarnation of its own.
func copyOf(nab *oadpv1alpha1.NonAdminBackup, key types.NamespacedName) *oadpv1alpha1.NonAdminBackup {
	made := nab.DeepCopy()
	made.TypeMeta = metav1.TypeMeta{APIVersion: oadpv1alpha1.GroupVersion.String(), Kind: "NonAdminBackup"}
	made.Namespace, made.Name, made.UID, made.ResourceVersion = key.Namespace, key.Name, types.UID(uuid.NewString()), ""
	return made
}

// settledCopy returns the copy of a backup that has come to its end, with its Velero Backup.
func (r *rig) settledCopy(
	nab *oadpv1alpha1.NonAdminBackup, m *model, key types.NamespacedName,
) (*oadpv1alpha1.NonAdminBackup, *velerov1.Backup) {
	made := copyOf(nab, key)
	name := owner.NACUUID(r.stack.ClusterID(), key.Namespace, key.Name, string(made.UID))
	made.Status.VeleroBackup.Name, made.Status.VeleroBackup.NACUUID = name, name
	velero := velero.NewBackup(made, name, env.OADPNamespace, m.velero.Spec)
	velero.TypeMeta = metav1.TypeMeta{APIVersion: velerov1.SchemeGroupVersion.String(), Kind: "Backup"}
	velero.UID, velero.Generation = types.UID(uuid.NewString()), m.velero.Generation
	velero.CreationTimestamp, velero.ManagedFields = m.velero.CreationTimestamp, m.velero.ManagedFields
	velero.Status = m.velero.Status
	return made, velero
}

// stored counts what was written into etcd.
type stored struct{ objects, bytes atomic.Int64 }

func (s *stored) put(ctx context.Context, into *etcdStore, object client.Object, prefix string) error {
	size, err := into.put(ctx, prefix+"/"+object.GetNamespace()+"/"+object.GetName(), object)
	s.objects.Add(1)
	s.bytes.Add(int64(size))
	return err
}

const (
	backupsKey       = "/registry/oadp.openshift.io/nonadminbackups"
	veleroBackupsKey = "/registry/velero.io/backups"
)

// storeCrowd writes the crowd's objects and returns how many bytes.
func (r *rig) storeCrowd(ctx context.Context, of crowd, m *models) (int64, error) {
	var done stored
	into := r.etcd(settlers)
	group, storing := errgroup.WithContext(ctx)
	group.SetLimit(settlers)
	begin := time.Now()
	store := func(nab *oadpv1alpha1.NonAdminBackup, key types.NamespacedName) error {
		if nab.Status.VeleroBackup == nil {
			return done.put(storing, into, copyOf(nab, key), backupsKey)
		}
		made, velero := r.settledCopy(nab, m.ordinary, key)
		if err := done.put(storing, into, velero, veleroBackupsKey); err != nil {
			return err
		}
		return done.put(storing, into, made, backupsKey)
	}
	for i := range of.ordinary + of.large {
		nab, kind := m.ordinary.nab, "ordinary"
		if i >= of.ordinary {
			nab, kind = m.pick(i), "large"
		}
		key := types.NamespacedName{Namespace: namespaceName(i % of.namespaces), Name: fmt.Sprintf("%s-%05d", kind, i)}
		group.Go(func() error { return store(nab, key) })
		if i > 0 && i%5000 == 0 {
			say("%d of %d backups stored, %d MiB, %.0f s", i, of.ordinary+of.large, done.bytes.Load()>>20, time.Since(begin).Seconds())
		}
	}
	err := group.Wait()
	say("%d objects, %d MiB stored in %.0f s", done.objects.Load(), done.bytes.Load()>>20, time.Since(begin).Seconds())
	return done.bytes.Load(), err
}

// checkCrowd returns an error unless the API server serves as many backups as were written for it.
func (r *rig) checkCrowd(ctx context.Context, want int) error {
	var list oadpv1alpha1.NonAdminBackupList
	if err := r.client.List(ctx, &list, client.Limit(1)); err != nil {
		return err
	}
	served := len(list.Items)
	if list.RemainingItemCount != nil {
		served += int(*list.RemainingItemCount)
	}
	if served != want {
		return fmt.Errorf("the API server serves %d backups of %d", served, want)
	}
	return nil
}

// awaitServed returns when the API server's own caches are filled: what it takes to start among so many objects is not measured.
func (r *rig) awaitServed(ctx context.Context) error {
	for _, kind := range []client.ObjectList{&oadpv1alpha1.NonAdminBackupList{}, &velerov1.BackupList{}} {
		from := metav1.ListOptions{
			SendInitialEvents: new(true), AllowWatchBookmarks: true, ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan,
		}
		for {
			served, err := r.client.Watch(ctx, kind, &client.ListOptions{Raw: &from})
			if err == nil {
				<-served.ResultChan()
				served.Stop()
				break
			}
			if !apierrors.IsTooManyRequests(err) || !sleep(ctx, time.Second) {
				return fmt.Errorf("await the API server's cache: %w", err)
			}
		}
	}
	return nil
}

func sizeOf(object any) int {
	data, err := json.Marshal(object)
	if err != nil {
		return 0
	}
	return len(data)
}

// etcdStore writes objects where the API server keeps them, as it does: by its own hands a gigabyte would take many minutes. What
// is written is a copy of what the API server itself accepted and stored.
type etcdStore struct {
	url  string
	http *http.Client
}

func (r *rig) etcd(connections int) *etcdStore {
	return &etcdStore{
		url:  "http://" + r.stack.Component(env.Etcd).Address(env.AddressClient) + "/v3/kv/put",
		http: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: connections}},
	}
}

// put stores an object under the API server's key and returns its size in bytes.
func (s *etcdStore) put(ctx context.Context, key string, object any) (int, error) {
	value, err := json.Marshal(object)
	if err != nil {
		return 0, err
	}
	body, err := json.Marshal(map[string][]byte{"key": []byte(key), "value": value}) // as base64, which etcd's gateway reads
	if err != nil {
		return 0, err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, s.url, bytes.NewReader(body))
	if err != nil {
		return 0, err
	}
	answer, err := s.http.Do(request)
	if err != nil {
		return 0, err
	}
	defer answer.Body.Close()
	said, err := io.ReadAll(answer.Body)
	if err == nil && answer.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", answer.Status, said)
	}
	if err != nil {
		return 0, fmt.Errorf("put %s into etcd: %w", key, err)
	}
	return len(value), nil
}
