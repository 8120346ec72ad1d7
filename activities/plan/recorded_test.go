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

// crowdedReader reads as if there were so many Velero Backups of others, and counts how those of plans are read.
type crowdedReader struct {
	client.Reader
	others      int64
	uncounted   error
	failed      error // of each get
	lists, gets atomic.Int32
}

func (r *crowdedReader) reads() []int { return []int{int(r.lists.Load()), int(r.gets.Load())} }

func (r *crowdedReader) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	counted, counts := list.(*metav1.PartialObjectMetadataList)
	switch _, lists := list.(*velerov1.BackupList); {
	case lists:
		r.lists.Add(1)
	case counts && r.uncounted != nil:
		return r.uncounted
	}
	err := r.Reader.List(ctx, list, opts...)
	if counts {
		counted.RemainingItemCount = &r.others
	}
	return err
}

func (r *crowdedReader) Get(ctx context.Context, key client.ObjectKey, object client.Object, opts ...client.GetOption) error {
	if _, is := object.(*velerov1.Backup); is {
		r.gets.Add(1)
		if r.failed != nil {
			return r.failed
		}
	}
	return r.Reader.Get(ctx, key, object, opts...)
}

// among has a scene's Velero Backups read among so many of others.
func (s *scene) among(others int64) *scene {
	s.reader = &crowdedReader{Reader: s.Client, others: others}
	return s
}

// amongOthers runs a test among few Velero Backups of others, where a plan's are listed, and among many, where they are got by
// their names: what counts as made by a plan does not depend on it.
func amongOthers(t *testing.T, test func(t *testing.T, others int64)) {
	t.Helper()
	for title, others := range map[string]int64{"among few": 0, "among many": 1_000_000} {
		t.Run(title, func(t *testing.T) { test(t, others) })
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
			reader := &crowdedReader{Reader: s.Client, others: test.others, uncounted: test.uncounted}
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
	s.reader = &crowdedReader{Reader: s.Client, others: 1_000_000, failed: errors.New("not now")}
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
	reader := &crowdedReader{Reader: s.Client, others: 1_000_000}
	s.reader = reader
	s.refresh()
	assert.Equal(t, []int{1, 0}, reader.reads())
}
