package plan_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"

	"holdfast.dev/holdfast/activities/activitytest"
	holdfastv1alpha1 "holdfast.dev/holdfast/k8s/api/holdfast/v1alpha1"
	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
	"holdfast.dev/holdfast/workflows/contract"
)

// Without restic Velero refuses what names it, and what was made with it may vanish or be restored no more. What is no protection
// must cost no older backup that is.
func TestWhatIsNoProtectionKeepsNoPlace(t *testing.T) {
	amongOthers(t, func(t *testing.T, others int64) {
		const older = "last, minGood"
		refresh := func(s *scene, nab *oadpv1alpha1.NonAdminBackup) {
			ref := contract.ObjectRef{Namespace: nab.Namespace, Name: nab.Name, UID: string(nab.UID)}
			_, err := activitytest.Run(s.t, s.World, contract.RefreshBackup.Name, contract.BackupStep{Ref: ref})
			require.NoError(s.t, err)
		}
		record := func(s *scene) {
			s.act(contract.RecordPlanBackups.Name, contract.PlanStep{})
			s.made = nil
		}
		vanish := func(s *scene, nab *oadpv1alpha1.NonAdminBackup) { s.Remove(s.Velero(nab.Status.VeleroBackup.Name)) }
		for title, test := range map[string]struct {
			ends velerov1.BackupPhase
			then func(*scene, *oadpv1alpha1.NonAdminBackup)
			kept []string // the newer one, and the older one
		}{
			"good":                         {"Completed", func(*scene, *oadpv1alpha1.NonAdminBackup) {}, []string{older}},
			"refused, as it names restic":  {"FailedValidation", func(*scene, *oadpv1alpha1.NonAdminBackup) {}, []string{"failed", older}},
			"in part":                      {"PartiallyFailed", func(*scene, *oadpv1alpha1.NonAdminBackup) {}, []string{"failed", older}},
			"cancelled":                    {"Cancelled", func(*scene, *oadpv1alpha1.NonAdminBackup) {}, []string{"failed", older}},
			"in a phase of tomorrow":       {"OfTomorrow", func(*scene, *oadpv1alpha1.NonAdminBackup) {}, []string{"unfinished", older}},
			"vanished before it was noted": {"Completed", vanish, []string{older}},
			"vanished unseen": {"Completed", func(s *scene, nab *oadpv1alpha1.NonAdminBackup) {
				record(s)
				vanish(s, nab)
			}, []string{older}},
			"vanished": {"Completed", func(s *scene, nab *oadpv1alpha1.NonAdminBackup) {
				record(s)
				vanish(s, nab)
				refresh(s, nab)
			}, []string{older}},
		} {
			t.Run(title, func(t *testing.T) {
				s := newScene(t, func(p *holdfastv1alpha1.BackupPlan) {
					p.Spec.Keep = &holdfastv1alpha1.Keep{Last: 1, MinGood: new(int32(1)), Failed: new(int32(1))}
				})
				s.among(others)
				s.now = s.now.Add(time.Minute)
				first := s.run()
				s.ends(first, velerov1.BackupPhaseCompleted)
				record(s)
				s.now = s.now.Add(time.Minute)
				second := s.run()
				s.ends(second, test.ends)
				test.then(s, s.Read(second.Name))
				view := s.refresh()
				var kept []string
				for _, each := range s.status().Retention.Kept {
					kept = append(kept, each.By)
				}
				assert.Equal(t, test.kept, kept)
				if title == "good" {
					assert.Equal(t, first.Name, view.Delete)
					assert.Equal(t, second.Name, s.status().LastGood.Name)
					return
				}
				assert.Empty(t, view.Delete, "the older one is all there is")
				assert.Equal(t, first.Name, s.status().LastGood.Name)
			})
		}
	})
}
