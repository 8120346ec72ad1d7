package plan

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	"go.temporal.io/sdk/activity"
	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"holdfast.dev/holdfast/k8s"
	holdfastv1alpha1 "holdfast.dev/holdfast/k8s/api/holdfast/v1alpha1"
	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
	"holdfast.dev/holdfast/k8s/owner"
)

const (
	// scannedPerGet is how many stored Velero Backups a list goes through for the CPU time of one get: the API server has no
	// index of labels, and reads each object of the namespace (docs/performance.md, "Finding a plan's backups").
	scannedPerGet = 2_500
	// maxGets bounds the gets of one reading, and getsAtATime those that are under way.
	maxGets     = 200
	getsAtATime = 4
	// countValidFor is how long the number of stored Velero Backups is used, and countAgain how soon it is counted again after an
	// error. countTimeout limits that.
	countValidFor = 5 * time.Minute
	countAgain    = 10 * time.Second
	countTimeout  = time.Second
)

// GetsAreCheaper reports whether it takes less of the API server's CPU time to get so many Velero Backups by name than to find
// them by a label among all that are stored.
func GetsAreCheaper(gets, stored int) bool { return gets <= maxGets && gets*scannedPerGet < stored }

// veleroBackups are those that may belong to one of a plan's NonAdminBackups, by name.
type veleroBackups struct {
	// own say that the plan has made them, earlier that a plan has made them that it continues.
	own, earlier map[string]*velerov1.Backup
	// got are all that exist of the plan's; nil if they were listed by their label, which the newest may not have yet.
	got map[string]*velerov1.Backup
}

// recorded lists the plan's Velero Backups by their label or, where that costs more, gets them by their names.
func (g *Gatherer) recorded(
	ctx context.Context, plan *holdfastv1alpha1.BackupPlan, nabs []oadpv1alpha1.NonAdminBackup,
) (veleroBackups, error) {
	of := veleroBackups{own: map[string]*velerov1.Backup{}, earlier: map[string]*velerov1.Backup{}}
	var found []*velerov1.Backup
	var err error
	if names := g.candidates(plan, nabs); GetsAreCheaper(len(names), g.stored.count(ctx, g)) {
		of.got = map[string]*velerov1.Backup{}
		found, err = g.get(ctx, names)
	} else {
		found, err = g.list(ctx, plan)
	}
	for _, made := range found {
		if of.got != nil {
			of.got[made.Name] = made
		}
		switch by := types.UID(made.Labels[holdfastv1alpha1.LabelRecordedPlan]); {
		case by == plan.UID:
			of.own[made.Name] = made
		case slices.Contains(plan.Status.Continues, by):
			of.earlier[made.Name] = made
		}
	}
	return of, err
}

// candidates are the names of the Velero Backups that NonAdminBackups may have which say that they are the plan's, or may become.
func (g *Gatherer) candidates(plan *holdfastv1alpha1.BackupPlan, nabs []oadpv1alpha1.NonAdminBackup) []string {
	names := sets.New[string]()
	for i := range nabs {
		nab := &nabs[i]
		synced := owner.SyncedFrom(nab)
		own := nab.Annotations[holdfastv1alpha1.AnnotationPlanUID] == string(plan.UID)
		if own {
			names.Insert(g.ownName(nab))
		}
		if synced != "" && (own || len(plan.Status.Continues) > 0) {
			names.Insert(synced)
		}
	}
	return sets.List(names)
}

func (g *Gatherer) ownName(nab *oadpv1alpha1.NonAdminBackup) string {
	return owner.NACUUID(g.ClusterID, nab.Namespace, nab.Name, string(nab.UID))
}

func (g *Gatherer) list(ctx context.Context, plan *holdfastv1alpha1.BackupPlan) ([]*velerov1.Backup, error) {
	uids := []string{string(plan.UID)}
	for _, uid := range plan.Status.Continues {
		uids = append(uids, string(uid))
	}
	by, err := labels.NewRequirement(holdfastv1alpha1.LabelRecordedPlan, selection.In, uids)
	if err != nil {
		return nil, fmt.Errorf("status of plan %s/%s: %w", plan.Namespace, plan.Name, err)
	}
	list := &velerov1.BackupList{}
	err = g.Reader.List(ctx, list, client.InNamespace(g.OADPNamespace),
		client.MatchingLabelsSelector{Selector: labels.NewSelector().Add(*by)})
	if err != nil {
		return nil, fmt.Errorf("list Velero Backups of plan %s/%s: %w", plan.Namespace, plan.Name, err)
	}
	found := make([]*velerov1.Backup, len(list.Items))
	for i := range list.Items {
		found[i] = &list.Items[i]
	}
	return found, nil
}

func (g *Gatherer) get(ctx context.Context, names []string) ([]*velerov1.Backup, error) {
	group, getting := errgroup.WithContext(ctx)
	group.SetLimit(getsAtATime)
	found := make([]*velerov1.Backup, len(names))
	for i, name := range names {
		group.Go(func() error {
			made := &velerov1.Backup{}
			exists, err := k8s.Get(getting, g.Reader, "Velero Backup", g.OADPNamespace, name, made)
			if exists {
				found[i] = made
			}
			return err
		})
	}
	err := group.Wait()
	return slices.DeleteFunc(found, func(made *velerov1.Backup) bool { return made == nil }), err
}

// made is a backup, and whether its Velero Backup says that the plan has made it. That of one that came back from a bucket has
// the name of an earlier object's. It counts in an administrator's location alone: in others a tenant writes what it says.
func (g *Gatherer) made(nab *oadpv1alpha1.NonAdminBackup, recorded map[string]*velerov1.Backup) Backup {
	b := Backup{Object: nab}
	own := g.ownName(nab)
	for _, name := range []string{own, owner.SyncedFrom(nab)} {
		velero := recorded[name]
		if owner.Backup.Called(velero, nab.Namespace, nab.Name) && (name == own || !owner.MayBeTenants(velero.Spec.StorageLocation)) {
			b.Recorded, b.Velero = true, velero
			return b
		}
	}
	return b
}

// storedBackups is how many Velero Backups there are, counted now and then.
type storedBackups struct {
	mutex  sync.Mutex
	due    time.Time
	number int
}

// count returns the number, which may be some minutes old; 0 until it was counted. The caller that counts makes no other wait.
func (s *storedBackups) count(ctx context.Context, g *Gatherer) int {
	s.mutex.Lock()
	number, now := s.number, time.Now()
	due := !now.Before(s.due)
	if due {
		s.due = now.Add(countAgain)
	}
	s.mutex.Unlock()
	if !due {
		return number
	}
	number, err := g.countStored(ctx)
	if err != nil {
		activity.GetLogger(ctx).Warn("cannot count the Velero Backups, will retry", "error", err)
	}
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if err == nil {
		s.number, s.due = number, now.Add(countValidFor)
	}
	return s.number
}

// countStored lists one Velero Backup: the API server says how many are left.
func (g *Gatherer) countStored(ctx context.Context) (int, error) {
	ctx, cancel := context.WithTimeout(ctx, countTimeout)
	defer cancel()
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(velerov1.SchemeGroupVersion.WithKind("BackupList"))
	if err := g.Reader.List(ctx, list, client.InNamespace(g.OADPNamespace), client.Limit(1)); err != nil {
		return 0, fmt.Errorf("count Velero Backups: %w", err)
	}
	left := list.GetRemainingItemCount()
	switch {
	case left != nil:
		return len(list.Items) + int(*left), nil
	case list.GetContinue() != "":
		return 0, errors.New("count Velero Backups: the API server does not say how many are left")
	}
	return len(list.Items), nil
}
