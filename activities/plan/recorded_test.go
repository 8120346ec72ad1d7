package plan_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"holdfast.dev/holdfast/activities/fake"
	holdfastv1alpha1 "holdfast.dev/holdfast/k8s/api/holdfast/v1alpha1"
	"holdfast.dev/holdfast/workflows/contract"
)

// stored is how many Velero Backups of others there are in a new scene.
var stored int64

// amid reads as if many Velero Backups of others were there, and counts how those of plans are read.
type amid struct {
	client.Reader
	others      int64
	uncounted   error
	failed      error // of each get
	lists, gets atomic.Int32
}

func (a *amid) reads() []int { return []int{int(a.lists.Load()), int(a.gets.Load())} }

func (a *amid) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	counted, counts := list.(*metav1.PartialObjectMetadataList)
	switch _, lists := list.(*velerov1.BackupList); {
	case lists:
		a.lists.Add(1)
	case counts && a.uncounted != nil:
		return a.uncounted
	}
	err := a.Reader.List(ctx, list, opts...)
	if counts {
		counted.RemainingItemCount = &a.others
	}
	return err
}

func (a *amid) Get(ctx context.Context, key client.ObjectKey, object client.Object, opts ...client.GetOption) error {
	if _, is := object.(*velerov1.Backup); is {
		a.gets.Add(1)
		if a.failed != nil {
			return a.failed
		}
	}
	return a.Reader.Get(ctx, key, object, opts...)
}

// What counts as made by a plan does not depend on how it is read.
func TestPlansAmidManyBackups(t *testing.T) {
	stored = 1_000_000
	t.Cleanup(func() { stored = 0 })
	for name, test := range map[string]func(*testing.T){
		"no protection": TestWhatIsNoProtectionKeepsNoPlace, "forged": TestARecordInATenantsBucketDoesNotCount,
		"restored": TestARestoredPlanHasTheBackupsOfTheOneBeforeIt, "not adopted": TestWhatARestoredPlanDoesNotAdopt,
		"of the same name": TestAPlanThatIsOnlyOfTheSameNameAdoptsNothing, "many": TestAPlanAdoptsManyByAndBy,
	} {
		t.Run(name, test)
	}
}

// A list goes through all Velero Backups there are, a get reads one.
func TestVeleroBackupsAreReadTheCheaperWay(t *testing.T) {
	for title, test := range map[string]struct {
		others      int64
		uncounted   error
		lists, gets int
	}{
		"few":                {others: 3*2_500 - 10, lists: 1},
		"many":               {others: 3 * 2_500, gets: 3},
		"as many, uncounted": {others: 3 * 2_500, uncounted: errors.New("not now"), lists: 1},
	} {
		t.Run(title, func(t *testing.T) {
			s := newScene(t, func(p *holdfastv1alpha1.BackupPlan) { p.Spec.Keep = &holdfastv1alpha1.Keep{Last: 9} })
			s.runs(3)
			s.act(contract.RecordPlanBackups.Name, contract.PlanStep{})
			s.made = nil
			reader := &amid{Reader: s.Client, others: test.others, uncounted: test.uncounted}
			s.reader = reader
			s.refresh()
			assert.Equal(t, []int{test.lists, test.gets}, reader.reads())
			assert.EqualValues(t, 3, s.status().Counts.Good)
			assert.EqualValues(t, 3, s.status().Counts.Stored)
		})
	}
}

// A backup that could not be read is not one that the plan has not made.
func TestAVeleroBackupThatCannotBeReadFailsTheReading(t *testing.T) {
	s := newScene(t, func(p *holdfastv1alpha1.BackupPlan) { p.Spec.Keep = &holdfastv1alpha1.Keep{Last: 9} })
	s.runs(3)
	s.reader = &amid{Reader: s.Client, others: 1_000_000, failed: errors.New("not now")}
	_, err := s.try(contract.RefreshPlan.Name, contract.PlanStep{})
	require.ErrorContains(t, err, "not now")
}

// A tenant who labels hundreds of backups as a plan's does not have each of them got.
func TestGetsOfOneReadingAreBounded(t *testing.T) {
	s := newScene(t, nil)
	for i := range 201 {
		nab := fake.NAB(fmt.Sprint("labelled-", i))
		nab.Labels = map[string]string{holdfastv1alpha1.LabelPlan: minutely}
		nab.Annotations = map[string]string{
			holdfastv1alpha1.AnnotationPlanUID: "uid-" + minutely, holdfastv1alpha1.AnnotationDue: s.now.UTC().Format(time.RFC3339),
		}
		require.NoError(t, s.Client.Create(t.Context(), nab))
	}
	reader := &amid{Reader: s.Client, others: 1_000_000}
	s.reader = reader
	s.refresh()
	assert.Equal(t, []int{1, 0}, reader.reads())
}
