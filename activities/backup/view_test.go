package backup_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"holdfast.dev/holdfast/activities/backup"
	"holdfast.dev/holdfast/activities/fake"
	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
	"holdfast.dev/holdfast/k8s/lifecycle"
	"holdfast.dev/holdfast/k8s/policy/check"
	"holdfast.dev/holdfast/k8s/velero"
	backupworkflow "holdfast.dev/holdfast/workflows/backup"
	"holdfast.dev/holdfast/workflows/contract"
)

// settled returns a backup that Velero finished and whose status says so.
func settled(phase velerov1.BackupPhase) *backup.Objects {
	nab := fake.NAB(name)
	nab.Finalizers = []string{oadpv1alpha1.NabFinalizer}
	velero := made(ours, "team", name)
	velero.Status.Phase = phase
	objects := &backup.Objects{NAB: nab, BackupName: ours, Backup: velero}
	lifecycle.ApplyVerdict(nab, acceptance, ours, fake.OADPNamespace)
	lifecycle.ApplyCreated(nab)
	backup.ApplyMirror(nab, objects, fake.OADPNamespace)
	return objects
}

// kept returns an object in BackingOff, judged again just now.
func kept(today check.Verdict) *backup.Objects {
	nab := fake.NAB(name)
	lifecycle.ApplyVerdict(nab, rejection, ours, fake.OADPNamespace)
	return &backup.Objects{NAB: nab, BackupName: ours, Verdict: &today}
}

func removedByVelero(o *backup.Objects) { o.NAB.DeletionTimestamp = &metav1.Time{Time: now} }

func TestSettled(t *testing.T) {
	type edit = func(*backup.Objects)
	lose := func(o *backup.Objects) { o.Backup = nil }
	mirror := func(o *backup.Objects) { backup.ApplyMirror(o.NAB, o, fake.OADPNamespace) }
	announce := func(o *backup.Objects) { backup.ApplyDeletion(o.NAB) }
	release := func(o *backup.Objects) { o.NAB.Finalizers = nil }
	velero := func(phase velerov1.BackupPhase) edit {
		return func(o *backup.Objects) { o.Backup.Status.Phase = phase }
	}
	unjudged := func(o *backup.Objects) { o.NAB.Generation = 2 }
	invalid := func(o *backup.Objects) { lifecycle.ApplyVerdict(o.NAB, rejection, ours, fake.OADPNamespace) }
	deleteBackup := func(o *backup.Objects) { o.NAB.Spec.DeleteBackup = true }
	forceDelete := func(o *backup.Objects) { o.NAB.Spec.ForceDeleteBackup = true }
	refused := func(o *backup.Objects) {
		lifecycle.ApplyVerdict(o.NAB, check.Verdict{Reason: lifecycle.ReasonVeleroBackupRefused}, ours, fake.OADPNamespace)
	}
	tests := map[string]struct {
		objects *backup.Objects
		edits   []edit
		want    bool
	}{
		"no object":                            {objects: &backup.Objects{}, want: true},
		"never looked at":                      {objects: &backup.Objects{NAB: fake.NAB(name), BackupName: ours}},
		"completed and mirrored":               {objects: settled("Completed"), want: true},
		"partially failed and mirrored":        {objects: settled("PartiallyFailed"), want: true},
		"failed and mirrored":                  {objects: settled("Failed"), want: true},
		"failed validation and mirrored":       {objects: settled("FailedValidation"), want: true},
		"waits for Velero":                     {objects: settled("")},
		"queued in Velero":                     {objects: settled("Queued")},
		"in progress":                          {objects: settled("InProgress")},
		"finalizing":                           {objects: settled("Finalizing")},
		"Velero deletes it":                    {objects: settled("Deleting")},
		"in a phase that a newer Velero has":   {objects: settled("Pondering")},
		"completed, not mirrored yet":          {objects: settled("InProgress"), edits: []edit{velero("Completed")}},
		"ended otherwise than mirrored":        {objects: settled("Completed"), edits: []edit{velero("Failed")}},
		"edited, not judged yet":               {objects: settled("Completed"), edits: []edit{unjudged}},
		"edited in vain and judged":            {objects: settled("Completed"), edits: []edit{unjudged, invalid}, want: true},
		"edited in vain while Velero works":    {objects: settled("InProgress"), edits: []edit{unjudged, invalid}},
		"finalizer taken off by hand":          {objects: settled("Completed"), edits: []edit{release}},
		"lost, not reported yet":               {objects: settled("Completed"), edits: []edit{lose}},
		"lost and reported":                    {objects: settled("Completed"), edits: []edit{lose, mirror}, want: true},
		"lost and reported, without finalizer": {objects: settled("Completed"), edits: []edit{lose, mirror, release}, want: true},
		"lost and reported, then edited":       {objects: settled("Completed"), edits: []edit{lose, mirror, unjudged}},
		"lost, reported and found again": {objects: settled("Completed"), edits: []edit{lose, mirror, func(o *backup.Objects) {
			o.Backup = made(ours, "team", name)
			o.Backup.Status.Phase = velerov1.BackupPhaseCompleted
		}}},

		"kept back, the cause still there":       {objects: kept(rejection), want: true},
		"kept back, the cause gone":              {objects: kept(acceptance)},
		"kept back, now for another reason":      {objects: kept(check.Verdict{Reason: "VeleroBackupNotOwned", Message: rejection.Message})},
		"kept back, now with another text":       {objects: kept(check.Verdict{Reason: rejection.Reason, Message: "other"})},
		"kept back, then edited":                 {objects: kept(rejection), edits: []edit{unjudged}},
		"kept back, then deleteBackup":           {objects: kept(rejection), edits: []edit{deleteBackup}},
		"kept back, removed, never protected":    {objects: kept(rejection), edits: []edit{removedByVelero}, want: true},
		"refused by the API server":              {objects: kept(acceptance), edits: []edit{refused}, want: true},
		"refused by the API server, then edited": {objects: kept(acceptance), edits: []edit{refused, unjudged}},
		"accepted, the Velero Backup is due": {objects: kept(acceptance), edits: []edit{func(o *backup.Objects) {
			lifecycle.ApplyVerdict(o.NAB, acceptance, ours, fake.OADPNamespace)
		}}},

		"deleteBackup":              {objects: settled("Completed"), edits: []edit{deleteBackup}},
		"deleteBackup, announced":   {objects: settled("Completed"), edits: []edit{deleteBackup, announce, removedByVelero}},
		"forceDeleteBackup":         {objects: settled("Completed"), edits: []edit{forceDelete}},
		"removed":                   {objects: settled("Completed"), edits: []edit{removedByVelero}},
		"removed and announced":     {objects: settled("Completed"), edits: []edit{removedByVelero, announce}, want: true},
		"removed, Velero works":     {objects: settled("InProgress"), edits: []edit{removedByVelero, announce}},
		"removed, not mirrored yet": {objects: settled("InProgress"), edits: []edit{removedByVelero, announce, velero("Completed")}},
		"removed, nothing left":     {objects: settled("Completed"), edits: []edit{removedByVelero, announce, lose}},
		"removed, only others' finalizers keep it": {
			objects: settled("Completed"), edits: []edit{removedByVelero, announce, release}, want: true,
		},
		"removed, deleteBackup taken back": {
			objects: settled("Completed"), edits: []edit{deleteBackup, announce, removedByVelero, func(o *backup.Objects) {
				o.NAB.Spec.DeleteBackup = false
				o.NAB.Generation++
			}},
		},
		"removed with its namespace": {
			objects: settled("Completed"), edits: []edit{removedByVelero, announce, func(o *backup.Objects) { o.NamespaceTerminating = true }},
		},
		"removed, announced by the other controller": {
			objects: settled("Completed"), edits: []edit{removedByVelero, announce, func(o *backup.Objects) {
				o.NAB.Status.Conditions[2].Message = "permanent backup deletion requires setting spec.deleteBackup to true"
				o.NAB.Status.Conditions[2].ObservedGeneration = 0
			}},
		},
	}
	for title, test := range tests {
		t.Run(title, func(t *testing.T) {
			for _, change := range test.edits {
				change(test.objects)
			}
			assert.Equal(t, test.want, backupworkflow.Settled(test.objects.View(now)), "%+v", test.objects.View(now))
		})
	}
}

// What Holdfast writes must not be news to it: a settled object that started its workflow would start it for ever.
func TestASettledObjectStaysSettledAfterItsOwnMirror(t *testing.T) {
	for _, phase := range []velerov1.BackupPhase{"Completed", "PartiallyFailed", "Failed", "FailedValidation"} {
		for _, there := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, the Velero Backup there: %v", phase, there), func(t *testing.T) {
				objects := settled(phase)
				if !there {
					objects.Backup = nil
					backup.ApplyMirror(objects.NAB, objects, fake.OADPNamespace)
				}
				require.True(t, backupworkflow.Settled(objects.View(now)))
				before := objects.NAB.DeepCopy()
				backup.ApplyMirror(objects.NAB, objects, fake.OADPNamespace)
				assert.Equal(t, before, objects.NAB, "nothing to write")
				assert.True(t, backupworkflow.Settled(objects.View(now)))
			})
		}
	}
}

// Every activity may run twice: what is written twice is the same as written once, and no phase goes back.
func TestApplyingTwiceIsApplyingOnce(t *testing.T) {
	apply := map[string]func(*backup.Objects){
		"acceptance": func(o *backup.Objects) { lifecycle.ApplyVerdict(o.NAB, acceptance, o.BackupName, fake.OADPNamespace) },
		"rejection":  func(o *backup.Objects) { lifecycle.ApplyVerdict(o.NAB, rejection, o.BackupName, fake.OADPNamespace) },
		"creation":   func(o *backup.Objects) { lifecycle.ApplyCreated(o.NAB) },
		"mirror":     func(o *backup.Objects) { backup.ApplyMirror(o.NAB, o, fake.OADPNamespace) },
		"deletion":   func(o *backup.Objects) { backup.ApplyDeletion(o.NAB) },
	}
	rank := map[oadpv1alpha1.NonAdminPhase]int{"": 0, "New": 1, "BackingOff": 2, "Created": 3, "Deleting": 4}
	states := map[string]*backup.Objects{
		"new": {NAB: fake.NAB(name), BackupName: ours}, "kept back": kept(rejection),
		"waiting": settled(""), "in progress": settled("InProgress"), "completed": settled("Completed"), "lost": settled("Failed"),
		"being deleted": settled("Completed"),
	}
	states["lost"].Backup = nil
	removedByVelero(states["being deleted"])
	backup.ApplyDeletion(states["being deleted"].NAB)
	for state, objects := range states {
		for title, do := range apply {
			t.Run(title+" of an object that is "+state, func(t *testing.T) {
				o := *objects
				o.NAB = objects.NAB.DeepCopy()
				from := o.NAB.Status.Phase
				do(&o)
				once := o.NAB.DeepCopy()
				do(&o)
				assert.Equal(t, once, o.NAB)
				assert.GreaterOrEqual(t, rank[once.Status.Phase], rank[from], "from %s to %s", from, once.Status.Phase)
			})
		}
	}
}

func TestViewOfTheRequestToDelete(t *testing.T) {
	of := made(ours, "team", name)
	request := func(attempt int, age time.Duration, phase velerov1.DeleteBackupRequestPhase, errs ...string) velerov1.DeleteBackupRequest {
		r := velero.NewDeleteRequest(fake.NAB(name), of, attempt)
		r.CreationTimestamp = metav1.NewTime(now.Add(-age))
		r.Status = velerov1.DeleteBackupRequestStatus{Phase: phase, Errors: errs}
		return *r
	}
	byHand := request(9, time.Minute, "Processed", "theirs")
	byHand.Annotations = nil
	byNAC := request(1, time.Minute, "Processed", "theirs")
	byNAC.Name = ours + "-x7k2p"
	tests := map[string]struct {
		recorded string
		there    []velerov1.DeleteBackupRequest
		want     contract.DeleteRequestView
	}{
		"none yet":           {},
		"not answered yet":   {there: []velerov1.DeleteBackupRequest{request(1, time.Minute, "")}, want: contract.DeleteRequestView{Attempt: 1, Exists: true}},
		"Velero works on it": {there: []velerov1.DeleteBackupRequest{request(1, 9*time.Minute, "InProgress")}, want: contract.DeleteRequestView{Attempt: 1, Exists: true}},
		"Velero left it behind": {
			there: []velerov1.DeleteBackupRequest{request(1, 11*time.Minute, "InProgress")},
			want:  contract.DeleteRequestView{Attempt: 1, Exists: true, Failed: true},
		},
		"Velero is in a phase of a newer release": {
			there: []velerov1.DeleteBackupRequest{request(1, 9*time.Minute, "OfTomorrow")}, want: contract.DeleteRequestView{Attempt: 1, Exists: true},
		},
		"and stays there": {
			there: []velerov1.DeleteBackupRequest{request(1, 11*time.Minute, "OfTomorrow")},
			want:  contract.DeleteRequestView{Attempt: 1, Exists: true, Failed: true},
		},
		"waits for long in a queue": {
			there: []velerov1.DeleteBackupRequest{request(1, time.Hour, "New")}, want: contract.DeleteRequestView{Attempt: 1, Exists: true},
		},
		"refused": {
			there: []velerov1.DeleteBackupRequest{request(1, time.Minute, "Processed", "read-only", "second")},
			want:  contract.DeleteRequestView{Attempt: 1, Exists: true, Failed: true, Error: "read-only"},
		},
		"the newest counts": {
			there: []velerov1.DeleteBackupRequest{
				request(10, time.Minute, "InProgress"), request(2, time.Minute, "Processed", "old"), request(9, time.Minute, "Processed", "old"),
			},
			want: contract.DeleteRequestView{Attempt: 10, Exists: true},
		},
		"recorded, and gone": {recorded: ours + "-3", want: contract.DeleteRequestView{Attempt: 3}},
		"an older one than recorded is left": {
			recorded: ours + "-3", there: []velerov1.DeleteBackupRequest{request(2, time.Minute, "Processed", "old")},
			want: contract.DeleteRequestView{Attempt: 3},
		},
		"a newer one than recorded": {
			recorded: ours + "-3", there: []velerov1.DeleteBackupRequest{request(4, time.Minute, "New")},
			want: contract.DeleteRequestView{Attempt: 4, Exists: true},
		},
		"made by hand":                     {there: []velerov1.DeleteBackupRequest{byHand}},
		"made by the non-admin controller": {there: []velerov1.DeleteBackupRequest{byNAC}},
		"recorded by the other controller": {recorded: ours + "-x7k2p"},
		"a forged record of another's":     {recorded: victims + "-3"},
	}
	for title, test := range tests {
		t.Run(title, func(t *testing.T) {
			nab := fake.NAB(name)
			nab.Spec.DeleteBackup = true
			if test.recorded != "" {
				nab.Status.VeleroDeleteBackupRequest = &oadpv1alpha1.VeleroDeleteBackupRequest{Name: test.recorded}
			}
			objects := &backup.Objects{NAB: nab, BackupName: ours, Backup: of, DeleteRequests: test.there}
			assert.Equal(t, test.want, objects.View(now).DeleteRequest)
		})
	}
}

func TestViewTellsTheFactsOfABackup(t *testing.T) {
	objects := settled("InProgress")
	objects.Backup.Status.Progress = &velerov1.BackupProgress{TotalItems: 56, ItemsBackedUp: 7}
	objects.NAB.Spec.DeleteBackup, objects.NAB.Spec.ForceDeleteBackup = true, true
	objects.NamespaceTerminating = true
	removedByVelero(objects)
	assert.Equal(t, contract.BackupView{
		Found: true, Phase: "Created", DeleteBackup: true, ForceDelete: true, BeingDeleted: true, NamespaceTerminating: true,
		Finalizer: true, SpecValidated: true, Accepted: true, EverCreated: true,
		Velero: contract.VeleroBackupView{
			Exists: true, Name: ours, Phase: "InProgress", Running: true, MirroredPhase: "InProgress",
			ItemsBackedUp: 7, TotalItems: 56,
		},
	}, objects.View(now))

	backup.ApplyDeletion(objects.NAB)
	assert.Equal(t, contract.MarkAccepted, objects.View(now).Marked)
	objects.NAB.Spec = oadpv1alpha1.NonAdminBackupSpec{}
	backup.ApplyDeletion(objects.NAB)
	assert.Equal(t, contract.MarkPending, objects.View(now).Marked)
	assert.True(t, objects.View(now).EverCreated, "the phase has moved on, the Queued condition tells")

	objects.Backup = nil
	lifecycle.ApplyVerdict(objects.NAB, check.Verdict{Reason: "VeleroBackupNotFound"}, ours, fake.OADPNamespace)
	view := objects.View(now)
	assert.True(t, view.AbsenceReported)
	assert.False(t, view.Accepted)
	assert.Equal(t, contract.VeleroBackupView{Name: ours, MirroredPhase: "InProgress"}, view.Velero)
}

// A view goes into a workflow's history, which has no room for all that Velero may say.
func TestLongWordsOfVelerosAreCut(t *testing.T) {
	objects := settled("Completed")
	objects.NAB.Spec.DeleteBackup = true
	request := velero.NewDeleteRequest(objects.NAB, objects.Backup, 1)
	request.Status = velerov1.DeleteBackupRequestStatus{Phase: "Processed", Errors: []string{strings.Repeat("é", 5000)}}
	objects.DeleteRequests = []velerov1.DeleteBackupRequest{*request}
	assert.LessOrEqual(t, len(objects.View(now).DeleteRequest.Error), 500)
	refusal := lifecycle.Refusal(objects.NAB, errors.New(strings.Repeat("é", 5000)))
	assert.LessOrEqual(t, len(refusal.Message), 1000, "it must fit into an Event too")
}

// A mirror of another Backup, forged or of the one before, is none of this Backup.
func TestAMirrorOfAnotherBackupDoesNotCount(t *testing.T) {
	objects := settled("Completed")
	statusNames(victims)(objects.NAB)
	objects.NAB.Status.VeleroBackup.Status = &velerov1.BackupStatus{Phase: "Completed"}
	assert.Empty(t, objects.View(now).Velero.MirroredPhase)
	assert.False(t, backupworkflow.Settled(objects.View(now)))
}
