package fdb

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fdbv1alpha1 "holdfast.dev/holdfast/k8s/api/fdb/v1alpha1"
	"holdfast.dev/holdfast/starter/operator"
	"holdfast.dev/holdfast/starter/operator/operatortest"
	"holdfast.dev/holdfast/workflows/contract"
)

func TestADescribedFoundationDBBackupSaysHowLongDataAreKept(t *testing.T) {
	ref := contract.ObjectRef{Namespace: "shop", Name: "ledger", UID: "u-1"}
	other := contract.FDBQueueEntry{Ref: contract.ObjectRef{Namespace: "bank", Name: "vault", UID: "u-9"}, Job: contract.FDBJobExpire}
	retained := func(object *fdbv1alpha1.FoundationDBBackup) {
		object.Spec.Expiry = fdbv1alpha1.BackupExpiry{MaxRetention: "720h", MinRestorable: "168h"}
	}
	deleted := func(object *fdbv1alpha1.FoundationDBBackup) {
		now := metav1.Now()
		object.DeletionTimestamp, object.Finalizers = &now, []string{fdbv1alpha1.FinalizerDelete}
	}
	later := time.Now().Add(time.Hour).Truncate(time.Second)
	tests := map[string]struct {
		object func(*fdbv1alpha1.FoundationDBBackup)
		queue  *contract.FDBExpiryQueueState
		want   []string
		not    string
	}{
		"no policy": {
			object: func(object *fdbv1alpha1.FoundationDBBackup) { object.Spec.Expiry.DeletionFinalizer = new(false) },
			want:   []string{"With its deletion: its data stay"}, not: "Queue of expirations",
		},
		"its turn runs": {
			object: retained, queue: &contract.FDBExpiryQueueState{
				Turns:   []contract.FDBTurn{{Ref: ref, Job: contract.FDBJobExpire, Turn: 1_780_000_000}},
				Entries: []contract.FDBQueueEntry{other, {Ref: ref, Job: contract.FDBJobExpire}},
			},
			want: []string{
				"Retention: data older than 720h may be expired; every moment of the last 168h stays restorable",
				"With its deletion: its data are deleted", "Queue of expirations: has its turn (expire) since 2026-05-28T20:26:40Z",
			},
		},
		"its pod goes": {
			object: retained, queue: &contract.FDBExpiryQueueState{
				Turns: []contract.FDBTurn{{Ref: ref, Job: contract.FDBJobExpire, Turn: 1_780_000_000, Closing: true}},
			},
			want: []string{"Queue of expirations: its turn (expire) since 2026-05-28T20:26:40Z has ended, except for a pod that is terminating"},
		},
		"it waits": {
			object: retained, queue: &contract.FDBExpiryQueueState{
				Entries: []contract.FDBQueueEntry{other, {Ref: ref, Job: contract.FDBJobExpire, NotBefore: later.Unix()}},
			},
			want: []string{"Queue of expirations: waits for its turn (expire), no. 2 of 2, not before " + later.UTC().Format(time.RFC3339)},
		},
		"it was removed": {
			object: retained, queue: &contract.FDBExpiryQueueState{Entries: []contract.FDBQueueEntry{other}},
			want: []string{"Queue of expirations: has no entry"},
		},
		"it comes after those that the queue carries": {
			object: retained, queue: &contract.FDBExpiryQueueState{Entries: []contract.FDBQueueEntry{other}, Beyond: 4000},
			want: []string{"Queue of expirations: is not among the first 1 of about 4001"},
		},
		"nobody answers": {
			object: retained, want: []string{"Not known: state of west/fdb-expiry-queue: no worker answers"}, not: "Queue of expirations:",
		},
		"it had a turn": {
			object: func(object *fdbv1alpha1.FoundationDBBackup) {
				at := metav1.NewTime(time.Unix(1_780_000_000, 0))
				object.Status.Expiry = &fdbv1alpha1.BackupExpiryStatus{
					LastTime: at, LastExpired: &at, Reason: fdbv1alpha1.ExpiryExpired, Message: "all older than that is gone",
				}
			},
			want: []string{
				"Last turn: Expired at 2026-05-28T20:26:40Z: all older than that is gone", "data expired last: 2026-05-28T20:26:40Z",
			},
		},
		"its data are deleted": {
			object: deleted, queue: &contract.FDBExpiryQueueState{
				Entries: []contract.FDBQueueEntry{{Ref: ref, Job: contract.FDBJobDelete}},
			},
			want: []string{
				"Reconciled: no: it is being deleted; its backup has ended, and its data are deleted in their turn",
				"Queue of expirations: waits for its turn (delete), no. 1 of 1",
			},
		},
	}
	for title, test := range tests {
		t.Run(title, func(t *testing.T) {
			object := ledgerBackup()
			test.object(object)
			states := answers{"west/fdbb/shop/ledger/u-1": contract.FDBBackupState{}}
			if test.queue != nil {
				states["west/fdb-expiry-queue"] = *test.queue
			}
			described := describedLedger(t, object, states.describer(t))
			text := operatortest.Printed(t, "table", described, described.Print)
			assert.Subset(t, operatortest.Lines(text), test.want)
			if test.not != "" {
				assert.NotContains(t, text, test.not)
			}
		})
	}
}

// The workflow of a backup that is stopped has ended, but the queue still answers.
func TestThePlaceInTheQueueNeedsNoWorkflowOfTheBackup(t *testing.T) {
	object := ledgerBackup()
	object.Spec.Expiry.MaxRetention = "720h"
	describer := operatortest.WorkflowFor(t, contract.KindFDBBackup)
	states := answers{"west/fdb-expiry-queue": contract.FDBExpiryQueueState{}}
	described := describedLedger(t, object, func(kind contract.Kind, of client.Object) operator.DescribedWorkflow {
		closed := describer(kind, of)
		closed.QueryAny = states.describer(t)(kind, of).QueryAny
		return closed
	})
	assert.Contains(t, operatortest.Lines(operatortest.Printed(t, "table", described, described.Print)), "Queue of expirations: has no entry")
}
