package velero

import (
	"context"
	"time"

	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"holdfast.dev/holdfast/activities/download"
	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
	"holdfast.dev/holdfast/k8s/kstatus"
	"holdfast.dev/holdfast/k8s/owner"
	"holdfast.dev/holdfast/starter/watch/caches"
	"holdfast.dev/holdfast/starter/watch/controllers"
	"holdfast.dev/holdfast/starter/watch/trim"
	"holdfast.dev/holdfast/workflows/contract"
	downloadworkflow "holdfast.dev/holdfast/workflows/download"
)

// +kubebuilder:rbac:groups=oadp.openshift.io,resources=nonadmindownloadrequests,verbs=list;watch
// +kubebuilder:rbac:groups=velero.io,namespace=openshift-adp,resources=downloadrequests,verbs=list;watch

// The caches hold no signed URL, but a digest.

var nonAdminDownloads = caches.New(caches.Kind{
	Phase: func(object client.Object) string {
		return string(object.(*oadpv1alpha1.NonAdminDownloadRequest).Status.Phase)
	},
}, func(kept, of *oadpv1alpha1.NonAdminDownloadRequest) {
	kept.Spec.Target = velerov1.DownloadTarget{
		Kind: velerov1.DownloadTargetKind(trim.Clip(string(of.Spec.Target.Kind), trim.NameBytes)),
		Name: trim.Clip(of.Spec.Target.Name, trim.NameBytes+1),
	}
	kept.Status.Phase = of.Status.Phase
	for _, each := range trim.Last(kstatus.Others(of.Status.Conditions)) {
		kept.Status.Conditions = append(kept.Status.Conditions, trim.Condition(each))
	}
	if answer := of.Status.VeleroDownloadRequest.Status; answer != nil {
		kept.Status.VeleroDownloadRequest.Status = &velerov1.DownloadRequestStatus{
			Phase: answer.Phase, Expiration: answer.Expiration, DownloadURL: download.Digest(answer.DownloadURL),
		}
	}
})

var veleroDownloads = caches.New(caches.Kind{
	InOADP: true,
	Phase:  func(object client.Object) string { return string(object.(*velerov1.DownloadRequest).Status.Phase) },
}, func(kept, of *velerov1.DownloadRequest) {
	kept.Spec.Target = velerov1.DownloadTarget{Kind: of.Spec.Target.Kind, Name: trim.Name(of.Spec.Target.Name)}
	kept.Status = velerov1.DownloadRequestStatus{
		Phase: of.Status.Phase, Expiration: of.Status.Expiration, DownloadURL: download.Digest(of.Status.DownloadURL),
	}
})

// downloads are the NonAdminDownloadRequests.
type downloads struct {
	*controllers.Kind[*oadpv1alpha1.NonAdminDownloadRequest]
	// now is the clock of tests.
	now func() time.Time
}

func newDownloads(env *Env) *downloads {
	d := &downloads{}
	d.Kind = controllers.New(controllers.Kind[*oadpv1alpha1.NonAdminDownloadRequest]{
		Env: env.Env, Name: "nonadmindownloadrequest", Workflow: contract.KindDownload,
		Own: nonAdminDownloads, Shared: true,
		Judge:   d.judge,
		Orphans: d.orphans,
	})
	d.Sources = []controllers.Source{
		{Of: nonAdminDownloads, Events: d.downloadEvents()},
		{Of: veleroDownloads, Events: d.veleroEvents()},
		{Of: nonAdminBackups, Events: d.subjectEvents(nonAdminBackups, oadpv1alpha1.KindNonAdminBackup, itself)},
		{Of: nonAdminRestores, Events: d.subjectEvents(nonAdminRestores, oadpv1alpha1.KindNonAdminRestore, itself)},
		{Of: veleroBackups, Events: d.subjectEvents(veleroBackups, oadpv1alpha1.KindNonAdminBackup, owner.Backup.Hint)},
		{Of: veleroRestores, Events: d.subjectEvents(veleroRestores, oadpv1alpha1.KindNonAdminRestore, owner.Restore.Hint)},
		{Of: veleroLocations, Events: d.locationEvents()},
	}
	return d
}

// itself is for a backup or restore that a request names.
func itself(subject metav1.Object) (types.NamespacedName, bool) {
	return types.NamespacedName{Namespace: subject.GetNamespace(), Name: subject.GetName()}, true
}

func downloadOrigin(made client.Object) (contract.ObjectRef, bool) {
	return download.OriginOf(made.(*velerov1.DownloadRequest))
}

// judge: a deleted request is not settled as long as its Velero DownloadRequest exists. An existing one is judged when it
// expires.
func (d *downloads) judge(ctx context.Context, from client.Reader, ref contract.ObjectRef) (controllers.View, error) {
	gatherer := &download.Gatherer{Reader: from, ClusterID: d.ClusterID, OADPNamespace: d.OADPNamespace, Now: d.now}
	o, err := gatherer.Gather(ctx, ref)
	if err != nil {
		return controllers.View{}, err
	}
	view := controllers.View{Found: o.NADR != nil, Due: !downloadworkflow.Settled(o.View())}
	if view.Found {
		view.Again = max(0, download.ExpiresAt(o.NADR).Sub(o.At))
	}
	return view, nil
}

// orphans are the requests for which Velero DownloadRequests were made.
func (d *downloads) orphans(ctx context.Context, do func(contract.ObjectRef)) error {
	return caches.Each(ctx, d.Client, &velerov1.DownloadRequest{}, func(made client.Object) {
		if ref, ours := download.OriginOf(made.(*velerov1.DownloadRequest)); ours {
			do(ref)
		}
	}, client.InNamespace(d.OADPNamespace))
}
