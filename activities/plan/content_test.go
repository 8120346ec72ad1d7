package plan_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	holdfastv1alpha1 "holdfast.dev/holdfast/k8s/api/holdfast/v1alpha1"
	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
	"holdfast.dev/holdfast/workflows/contract"
)

// told returns the Events with a reason, and forgets the others.
func (s *scene) told(reason string) (notes []string) {
	for len(s.Events) > 0 {
		if event := <-s.Events; strings.Contains(event, " "+reason+" ") {
			notes = append(notes, event)
		}
	}
	return notes
}

func (s *scene) message(kind string) string {
	return meta.FindStatusCondition(s.status().Conditions, kind).Message
}

// Velero completes the backup of a namespace that somebody has emptied: it is said once of each, and does not make the last one
// go with something in it, until one has that again.
func TestAnEmptyBackupDoesNotTakeThePlaceOfAFullOne(t *testing.T) {
	s := newScene(t, func(p *holdfastv1alpha1.BackupPlan) { p.Spec.Keep = &holdfastv1alpha1.Keep{Last: 2} })
	s.items, s.volumes = 40, 1
	full := s.runs(2)
	s.refresh()
	assert.Equal(t, "True Usual", s.reason("ContentUsual"))
	assert.Empty(t, s.told("Usual"), "as it should be")

	s.items, s.volumes = 3, 0
	empty := s.runs(1)
	assert.Equal(t, full[0], s.refresh().Delete, "the other full one is the last but one")
	assert.Equal(t, "False Empty", s.reason("ContentUsual"))
	assert.Len(t, s.told("Empty"), 1)
	s.refresh()
	assert.Empty(t, s.told("Empty"), "once for each run")

	empty = append(empty, s.runs(2)...)
	assert.Equal(t, full[0], s.refresh().Delete)
	assert.Len(t, s.told("Empty"), 2)
	message := s.message("ContentUsual")
	assert.Contains(t, message, empty[2]+" holds 3 items and 0 volumes, those before it at least 40 and 1")
	assert.Contains(t, message, "holdfast.dev/usual=true")
	assert.Contains(t, s.status().Retention.Kept, holdfastv1alpha1.Kept{Name: full[1], By: "minGood"})
	assert.Equal(t, int64(3), s.status().Content.Less)
	s.act(contract.DeletePlanBackup.Name, contract.PlanStep{Backup: full[1]})
	assert.False(t, s.Read(full[1]).Spec.DeleteBackup)

	s.items, s.volumes = 41, 1
	s.runs(1)
	s.refresh()
	assert.Equal(t, "True Usual", s.reason("ContentUsual"))
	assert.Len(t, s.told("Usual"), 1)
	assert.Contains(t, s.status().Retention.Due, holdfastv1alpha1.BackupReason{Name: full[1], Why: "no rule of keep names it"})
}

func TestAPersonSaysThatANamespaceHasShrunk(t *testing.T) {
	s := newScene(t, func(p *holdfastv1alpha1.BackupPlan) { p.Spec.Keep = &holdfastv1alpha1.Keep{Last: 1} })
	s.items = 40
	full := s.runs(1)
	s.items = 12
	less := s.runs(1)
	s.refresh()
	assert.Equal(t, "False FarLess", s.reason("ContentUsual"))
	assert.Empty(t, s.refresh().Delete)
	nab := s.Read(less[0])
	nab.Labels[holdfastv1alpha1.LabelUsual] = holdfastv1alpha1.LabelUsualValue
	require.NoError(t, s.Client.Update(t.Context(), nab))
	assert.Equal(t, full[0], s.refresh().Delete)
	assert.Equal(t, "True Usual", s.reason("ContentUsual"))
	s.runs(1)
	s.refresh()
	assert.Equal(t, "True Usual", s.reason("ContentUsual"), "from now on")
}

// Without keep nothing is deleted; it is said, too, also of a plan that has run before anything was counted.
func TestAPlanFromBeforeIsJudgedByItsBackups(t *testing.T) {
	s := newScene(t, nil)
	s.items = 40
	s.runs(2)
	s.items = 3
	s.runs(1)
	s.refresh()
	before := s.ReadPlan(minutely)
	before.Status.Content, before.Status.Conditions = nil, nil
	require.NoError(t, s.Client.Status().Update(t.Context(), before))
	s.refresh()
	assert.Equal(t, "False Empty", s.reason("ContentUsual"))
	assert.NotContains(t, s.message("ContentUsual"), "minGood")
	assert.Equal(t, int64(1), s.status().Content.Less)
}

func TestWhatIsNotCountedIsNotEmpty(t *testing.T) {
	s := newScene(t, nil)
	s.items = 40
	s.runs(1)
	s.items = 0
	s.runs(1)
	s.refresh()
	assert.Equal(t, "Unknown Unknown", s.reason("ContentUsual"))
	assert.Zero(t, s.status().Content.Less)
}

// A namespace that nobody uses, as of a default plan: it is said once, and nothing is lost.
func TestANamespaceThatWasAlwaysEmpty(t *testing.T) {
	s := newScene(t, nil)
	s.items = 3
	s.runs(3)
	s.refresh()
	assert.Equal(t, "False Empty", s.reason("ContentUsual"))
	assert.Len(t, s.told("Empty"), 1)
	assert.Zero(t, s.status().Content.Less)
}

func TestHowLittleIsNothing(t *testing.T) {
	labels := &metav1.LabelSelector{MatchLabels: map[string]string{"app": "shop"}}
	for title, test := range map[string]struct {
		spec         velerov1.BackupSpec
		items, files int
		empty        bool
	}{
		"the Namespace and what Kubernetes puts into it": {velerov1.BackupSpec{}, 3, 0, true},
		"one thing more":                     {velerov1.BackupSpec{}, 4, 0, false},
		"a volume":                           {velerov1.BackupSpec{}, 3, 1, false},
		"labels that select nothing":         {velerov1.BackupSpec{LabelSelector: labels}, 1, 0, true},
		"labels that select one thing":       {velerov1.BackupSpec{OrLabelSelectors: []*metav1.LabelSelector{labels}}, 2, 0, false},
		"one thing of a kind":                {velerov1.BackupSpec{IncludedResources: []string{"secrets"}}, 1, 0, false},
		"nothing of a kind":                  {velerov1.BackupSpec{IncludedNamespaceScopedResources: []string{"secrets"}}, 0, 0, true},
		"of all kinds, what every one holds": {velerov1.BackupSpec{IncludedResources: []string{"*"}}, 3, 0, true},
	} {
		s := newScene(t, nil)
		s.now = s.now.Add(time.Minute)
		nab := s.run()
		s.ends(nab, velerov1.BackupPhaseCompleted)
		nab = s.Read(nab.Name)
		nab.Status.VeleroBackup.Spec = &test.spec
		nab.Status.VeleroBackup.Status.Progress = &velerov1.BackupProgress{ItemsBackedUp: test.items}
		nab.Status.FileSystemPodVolumeBackups = &oadpv1alpha1.FileSystemPodVolumeBackups{Total: 2, Completed: test.files}
		require.NoError(t, s.Client.Status().Update(t.Context(), nab))
		s.refresh()
		assert.Equal(t, test.empty, s.status().Content.Newest.Empty, title)
	}
}
