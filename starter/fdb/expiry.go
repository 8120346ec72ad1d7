package fdb

import (
	"fmt"
	"strings"
	"time"

	fdbv1alpha1 "holdfast.dev/holdfast/k8s/api/fdb/v1alpha1"
	"holdfast.dev/holdfast/starter/operator"
	"holdfast.dev/holdfast/workflows/contract"
	fdbbackup "holdfast.dev/holdfast/workflows/fdb/backup"
)

// describedTurn is a backup's place in the queue of expirations.
type describedTurn struct {
	// Running is its turn if one runs; Entry is its entry, and Position the entry's position among Entries, from 1. A backup may
	// have neither.
	Running  *contract.FDBTurn       `json:"running,omitempty"`
	Entry    *contract.FDBQueueEntry `json:"entry,omitempty"`
	Position int                     `json:"position,omitempty"`
	Entries  int                     `json:"entries"`
	// Beyond is how many entries the queue does not carry.
	Beyond int `json:"beyond,omitempty"`
}

// expirationsOf queries the queue for the place of a backup that has a policy, or is being deleted; nil for others.
func expirationsOf(d *describedFDBBackup, object *fdbv1alpha1.FoundationDBBackup) *describedTurn {
	if d.Workflow.QueryAny == nil || (object.Spec.Expiry.MaxRetention == "" && !d.Deleting) {
		return nil
	}
	cluster, _, _ := strings.Cut(d.Workflow.ID, "/")
	queue := stateOf[contract.FDBExpiryQueueState](d, contract.FDBExpiryQueueID(cluster))
	if queue == nil {
		return nil
	}
	turn := &describedTurn{Entries: len(queue.Entries) + queue.Beyond, Beyond: queue.Beyond}
	for _, running := range queue.Turns {
		if running.Ref.UID == string(object.UID) {
			turn.Running = &running
		}
	}
	for i, entry := range queue.Entries {
		if entry.Ref.UID == string(object.UID) {
			turn.Entry, turn.Position = &entry, i+1
		}
	}
	return turn
}

// printExpiry shows the policy, the result of the last turn, and when the next one is.
func (d *describedFDBBackup) printExpiry(s operator.Sheet) {
	policy := d.Spec.Expiry
	if policy.MaxRetention != "" {
		text := "data older than " + policy.MaxRetention + " may be expired"
		if policy.MinRestorable != "" {
			text += "; every moment of the last " + policy.MinRestorable + " stays restorable"
		}
		s.Line("Retention", text)
	}
	if fdbbackup.DeletionRequested(&fdbv1alpha1.FoundationDBBackup{Spec: d.Spec}) {
		s.Line("With its deletion", "its data are deleted")
	} else {
		s.Line("With its deletion", "its data stay")
	}
	if last := d.Status.Expiry; last != nil {
		text := fmt.Sprintf("%s at %s", last.Reason, last.LastTime.UTC().Format(time.RFC3339))
		if last.Message != "" {
			text += ": " + last.Message
		}
		s.Line("Last turn", text)
		if last.LastExpired != nil {
			s.Line("  data expired last", last.LastExpired.UTC().Format(time.RFC3339))
		}
	}
	if d.Expirations != nil {
		s.Line("Queue of expirations", d.Expirations.text())
	}
}

func (t *describedTurn) text() string {
	at := func(seconds int64) string { return time.Unix(seconds, 0).UTC().Format(time.RFC3339) }
	switch {
	case t.Running != nil && t.Running.Closing:
		return fmt.Sprintf("its turn (%s) since %s has ended, except for a pod that is terminating", t.Running.Job, at(t.Running.Turn))
	case t.Running != nil:
		return fmt.Sprintf("has its turn (%s) since %s", t.Running.Job, at(t.Running.Turn))
	case t.Entry == nil && t.Beyond > 0:
		return fmt.Sprintf("is not among the first %d of about %d", t.Entries-t.Beyond, t.Entries)
	case t.Entry == nil:
		return "has no entry"
	}
	text := fmt.Sprintf("waits for its turn (%s), no. %d of %d", t.Entry.Job, t.Position, t.Entries)
	if t.Entry.NotBefore > time.Now().Unix() {
		text += ", not before " + at(t.Entry.NotBefore)
	}
	return text
}
