package velero

import (
	"context"
	"time"

	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"holdfast.dev/holdfast/activities/download"
	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
	"holdfast.dev/holdfast/k8s/watch/caches"
	"holdfast.dev/holdfast/k8s/watch/watched"
	"holdfast.dev/holdfast/workflows/contract"
	downloadworkflow "holdfast.dev/holdfast/workflows/download"
)

// +kubebuilder:rbac:groups=oadp.openshift.io,resources=nonadmindownloadrequests,verbs=get;list;watch
// +kubebuilder:rbac:groups=velero.io,namespace=openshift-adp,resources=downloadrequests,verbs=get;list;watch

// downloads are the NonAdminDownloadRequests. The caches hold no signed URL.
type downloads struct {
	*watched.Kind[*oadpv1alpha1.NonAdminDownloadRequest]
	// now is the clock of tests.
	now func() time.Time
}

func newDownloads(env *Env) *downloads {
	d := &downloads{}
	d.Kind = watched.New(watched.Kind[*oadpv1alpha1.NonAdminDownloadRequest]{
		Env: env.Env, Name: "nonadmindownloadrequest", Workflow: contract.KindDownload,
		Shared: true,
		Sources: []watched.Source{
			{Of: &oadpv1alpha1.NonAdminDownloadRequest{}, Events: d.downloadEvents()},
			{Of: &velerov1.DownloadRequest{}, Events: d.veleroEvents()},
			{Of: &oadpv1alpha1.NonAdminBackup{}, Events: d.subjectEvents(oadpv1alpha1.KindNonAdminBackup)},
			{Of: &oadpv1alpha1.NonAdminRestore{}, Events: d.subjectEvents(oadpv1alpha1.KindNonAdminRestore)},
			{Of: &velerov1.Backup{}, Events: d.veleroSubjectEvents()},
			{Of: &velerov1.Restore{}, Events: d.veleroSubjectEvents()},
			{Of: &velerov1.BackupStorageLocation{}, Events: d.locationEvents()},
		},
		Judge: d.judge,
		// A refusal is judged from the cache: if that is out of date, the request is judged again at the event of the changed
		// object.
		Sweep: watched.Sweep{Compared: []watched.Compared{
			{Of: &velerov1.DownloadRequest{}, In: env.OADPNamespace, Concerns: downloadOrigin},
			{Of: &oadpv1alpha1.NonAdminDownloadRequest{}, Concerns: func(nadr client.Object) (contract.ObjectRef, bool) {
				ref, ours := watched.Itself(nadr)
				ref.UID = string(nadr.GetUID()) // a deleted one, too: it may have left a Velero object
				return ref, ours
			}},
		}},
		Left: d.left,
	})
	return d
}

func downloadOrigin(made client.Object) (contract.ObjectRef, bool) {
	return download.OriginOf(made.(*velerov1.DownloadRequest))
}

// judge: a deleted request is not settled as long as its Velero DownloadRequest exists. An existing one is judged when it
// expires.
func (d *downloads) judge(ctx context.Context, from client.Reader, ref contract.ObjectRef) (watched.View, error) {
	gatherer := &download.Gatherer{Reader: from, ClusterID: d.ClusterID, OADPNamespace: d.OADPNamespace, Now: d.now}
	o, err := gatherer.Gather(ctx, ref)
	if err != nil {
		return watched.View{}, err
	}
	view := watched.View{Found: o.NADR != nil, Due: !downloadworkflow.Settled(o.View())}
	if view.Found {
		view.Again = max(0, download.ExpiresAt(o.NADR).Sub(o.At))
	}
	return view, nil
}

// left are the requests for which Velero DownloadRequests were made.
func (d *downloads) left(ctx context.Context, do func(contract.ObjectRef)) error {
	return caches.Each(ctx, d.Client, &velerov1.DownloadRequest{}, func(made client.Object) {
		if ref, ours := downloadOrigin(made); ours {
			do(ref)
		}
	}, client.InNamespace(d.OADPNamespace))
}
