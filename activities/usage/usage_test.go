package usage_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"holdfast.dev/holdfast/activities/activitytest"
	"holdfast.dev/holdfast/activities/fake"
	"holdfast.dev/holdfast/activities/usage"
	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
	"holdfast.dev/holdfast/k8s/lifecycle"
	"holdfast.dev/holdfast/k8s/policy/check"
	"holdfast.dev/holdfast/k8s/policy/quota"
)

// What a quota counts is decided by what Holdfast itself has written.
func TestHowAQuotaCountsABackup(t *testing.T) {
	now := time.Date(2026, 11, 25, 12, 0, 0, 0, time.UTC)
	begun := now.Add(-time.Hour)
	made := func(name string, phase velerov1.BackupPhase) func(*oadpv1alpha1.NonAdminBackup) {
		return func(nab *oadpv1alpha1.NonAdminBackup) {
			nab.Finalizers = []string{oadpv1alpha1.NabFinalizer}
			lifecycle.ApplyVerdict(nab, check.Verdict{Accepted: true, Reason: "BackupAccepted"}, name, fake.OADPNamespace)
			lifecycle.ApplyCreated(nab)
			nab.Status.VeleroBackup.Status = &velerov1.BackupStatus{Phase: phase}
			for i := range nab.Status.Conditions {
				nab.Status.Conditions[i].LastTransitionTime = metav1.NewTime(begun)
			}
		}
	}
	refused := func(reason string) func(*oadpv1alpha1.NonAdminBackup) {
		return func(nab *oadpv1alpha1.NonAdminBackup) {
			lifecycle.ApplyVerdict(nab, check.Verdict{Reason: reason}, "", "")
		}
	}
	seen := func(nab *oadpv1alpha1.NonAdminBackup) { lifecycle.ApplySeen(nab) }
	finalizer := func(nab *oadpv1alpha1.NonAdminBackup) { nab.Finalizers = []string{oadpv1alpha1.NabFinalizer} }
	edited := func(nab *oadpv1alpha1.NonAdminBackup) { nab.Generation++ }
	deleted := func(nab *oadpv1alpha1.NonAdminBackup) { nab.Spec.DeleteBackup = true }
	synced := func(nab *oadpv1alpha1.NonAdminBackup) {
		nab.Labels = map[string]string{oadpv1alpha1.NabSyncLabel: "team-nightly-of-old"}
	}
	gone := func(nab *oadpv1alpha1.NonAdminBackup) {
		lifecycle.ApplyBackup(nab, activitytest.Ours, nil, fake.OADPNamespace)
	}
	ours := activitytest.Ours
	inLine := func(nab *oadpv1alpha1.NonAdminBackup) {
		finalizer(nab)
		lifecycle.ApplyVerdict(nab, check.Verdict{Accepted: true, Reason: "BackupAccepted"}, ours, fake.OADPNamespace)
		lifecycle.ApplyWaiting(nab)
	}
	yielded := func(nab *oadpv1alpha1.NonAdminBackup) { nab.Finalizers = nil }
	waits, about := quota.Backup{Waits: true}, quota.Backup{Stored: true, Active: true, Begins: true}
	for title, test := range map[string]struct {
		changes []func(*oadpv1alpha1.NonAdminBackup)
		want    quota.Backup
	}{
		"new":                              {want: waits},
		"seen, not judged":                 {[]func(*oadpv1alpha1.NonAdminBackup){seen}, waits},
		"refused by a quota":               {[]func(*oadpv1alpha1.NonAdminBackup){refused("QuotaExceeded")}, waits},
		"refused":                          {[]func(*oadpv1alpha1.NonAdminBackup){refused("InvalidBackupSpec")}, quota.Backup{}},
		"refused, and edited since":        {[]func(*oadpv1alpha1.NonAdminBackup){refused("InvalidBackupSpec"), edited}, waits},
		"to be deleted before it was made": {[]func(*oadpv1alpha1.NonAdminBackup){deleted}, quota.Backup{}},
		"with the mark of a place":         {[]func(*oadpv1alpha1.NonAdminBackup){finalizer}, about},
		"with the mark, and to be deleted": {[]func(*oadpv1alpha1.NonAdminBackup){finalizer, deleted}, about},
		"with the mark, judged again":      {[]func(*oadpv1alpha1.NonAdminBackup){refused("InvalidBackupSpec"), finalizer}, about},
		"not creatable":                    {[]func(*oadpv1alpha1.NonAdminBackup){finalizer, refused(lifecycle.ReasonVeleroBackupRefused)}, quota.Backup{}},
		"waits for its turn":               {[]func(*oadpv1alpha1.NonAdminBackup){inLine}, about},
		"waits, and says it is a bucket's": {[]func(*oadpv1alpha1.NonAdminBackup){inLine, synced}, about},
		"refused after it waited":          {[]func(*oadpv1alpha1.NonAdminBackup){inLine, yielded, refused("InvalidBackupSpec")}, quota.Backup{}},
		"not creatable at its turn":        {[]func(*oadpv1alpha1.NonAdminBackup){inLine, refused(lifecycle.ReasonVeleroBackupRefused)}, quota.Backup{}},
		"at work":                          {[]func(*oadpv1alpha1.NonAdminBackup){made(ours, "InProgress")}, quota.Backup{Stored: true, Active: true, Begun: begun}},
		"ended":                            {[]func(*oadpv1alpha1.NonAdminBackup){made(ours, "Failed")}, quota.Backup{Stored: true, Begun: begun}},
		"being deleted":                    {[]func(*oadpv1alpha1.NonAdminBackup){made(ours, "Completed"), deleted}, quota.Backup{Stored: true, Begun: begun}},
		"expired":                          {[]func(*oadpv1alpha1.NonAdminBackup){made(ours, "InProgress"), gone}, quota.Backup{Begun: begun}},
		"edited to an invalid spec":        {[]func(*oadpv1alpha1.NonAdminBackup){made(ours, "Completed"), edited, refused("InvalidBackupSpec")}, quota.Backup{Stored: true, Begun: begun}},
		"found in a bucket":                {[]func(*oadpv1alpha1.NonAdminBackup){synced, made("team-nightly-of-old", "Completed")}, quota.Backup{Stored: true}},
		"to be found in a bucket":          {[]func(*oadpv1alpha1.NonAdminBackup){synced}, quota.Backup{}},
		"says that it is from a bucket":    {[]func(*oadpv1alpha1.NonAdminBackup){made(ours, "Completed"), synced}, quota.Backup{Stored: true, Begun: begun}},
	} {
		t.Run(title, func(t *testing.T) {
			nab := fake.NAB(activitytest.Name)
			nab.CreationTimestamp = metav1.NewTime(begun)
			for _, change := range test.changes {
				change(nab)
			}
			test.want.Name, test.want.Created = nab.Name, begun
			assert.Equal(t, test.want, usage.Counted(nab, fake.Cluster))
		})
	}
}
