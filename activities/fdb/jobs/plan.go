package jobs

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"holdfast.dev/holdfast/activities/fdb/gather"
	fdbv1alpha1 "holdfast.dev/holdfast/k8s/api/fdb/v1alpha1"
	"holdfast.dev/holdfast/k8s/fdb"
	"holdfast.dev/holdfast/workflows/contract"
	fdbbackup "holdfast.dev/holdfast/workflows/fdb/backup"
)

// Version returns the version of the image in which the tools run: the cluster's, or the last known one.
func Version(objects *gather.Objects) string {
	known := ""
	if objects.Cluster != nil {
		known = objects.Cluster.Version
	}
	return cmp.Or(known, objects.Object.Annotations[fdbv1alpha1.AnnotationClusterVersion])
}

// PlanTurn says what a turn that began at turn has to do. Both times are in Unix seconds: a turn may have begun in the future by
// a wrong clock, and then what expires is counted from now. The caller adds the pods.
func PlanTurn(objects *gather.Objects, job contract.FDBJob, turn, now int64) contract.FDBExpiryPlan {
	if objects.Object == nil {
		return outcome(contract.FDBTurnGone, "the FoundationDBBackup is gone")
	}
	var plan contract.FDBExpiryPlan
	switch job {
	case contract.FDBJobExpire:
		plan = planExpire(objects, min(turn, now))
	case contract.FDBJobDelete:
		plan = planDelete(objects)
	default:
		plan = outcome(contract.FDBTurnNothing, "there is no job %.40q", job)
	}
	plan.Owner = objects.Object.Namespace + "/" + objects.Object.Name
	return plan
}

func outcome(end contract.FDBTurnOutcome, format string, values ...any) contract.FDBExpiryPlan {
	return contract.FDBExpiryPlan{Outcome: end, Message: fdb.Bound(fmt.Sprintf(format, values...), maxMessage)}
}

// planExpire expires the newest backup that has data, or is about to have some. Those before it may be deleted once that one
// holds what must stay restorable.
func planExpire(objects *gather.Objects, turn int64) contract.FDBExpiryPlan {
	object := objects.Object
	if !object.DeletionTimestamp.IsZero() {
		return outcome(contract.FDBTurnNothing, "the FoundationDBBackup is being deleted: nothing is expired any more")
	}
	before, after, err := bounds(object.Spec.Expiry, turn)
	if err != nil {
		return outcome(contract.FDBTurnFailed, "%s", err)
	}
	if before <= 0 {
		return outcome(contract.FDBTurnNothing, "spec.expiry.maxRetention is not set, or goes back before 1970: all data are kept")
	}
	entries := objects.View().Backups
	at := newest(entries)
	if at < 0 {
		return outcome(contract.FDBTurnNothing, "there is no backup with data yet")
	}
	expired := entries[at]
	place, known := placeOf(expired.URL)
	switch {
	case !known:
		return outcome(contract.FDBTurnFailed, "the backup in status.backups is in no object store: %s", fdb.Redact(expired.URL, nil))
	case !objects.Reachable():
		return outcome(contract.FDBTurnNotYet, "%s; only the database knows which versions are old enough", objects.Problem.Message)
	}
	if problem := locked(objects, expired.URL); problem != "" {
		return outcome(contract.FDBTurnNotYet, "%s", problem)
	}
	return contract.FDBExpiryPlan{
		Expire: &contract.FDBExpire{FDBPlace: place, Before: before, RestorableAfter: after, Stopped: !runs(expired)},
		Delete: superseded(objects, entries, at),
	}
}

// bounds returns the cutoff and the time from which data must stay restorable, in Unix seconds; 0 if the spec sets none.
func bounds(expiry fdbv1alpha1.BackupExpiry, turn int64) (before, after int64, err error) {
	if expiry.MaxRetention == "" {
		return 0, 0, nil
	}
	most, err := time.ParseDuration(expiry.MaxRetention)
	if err != nil || most <= 0 {
		return 0, 0, fmt.Errorf("spec.expiry.maxRetention %.40q is not a duration such as 720h", expiry.MaxRetention)
	}
	before = turn - seconds(most)
	if expiry.MinRestorable == "" {
		return before, 0, nil
	}
	least, err := time.ParseDuration(expiry.MinRestorable)
	if err != nil || least < 0 {
		return 0, 0, fmt.Errorf("spec.expiry.minRestorable %.40q is not a duration such as 168h", expiry.MinRestorable)
	}
	if least > most { // FoundationDB's error does not say why
		return 0, 0, fmt.Errorf("spec.expiry.minRestorable %s is longer than maxRetention %s: nothing could ever expire", least, most)
	}
	return before, turn - seconds(least), nil
}

// seconds rounds up, so that nothing expires too early.
func seconds(d time.Duration) int64 { return int64((d + time.Second - 1) / time.Second) }

// newest returns the index of the newest entry that has data, or is about to have some; -1 if there is none.
func newest(entries []contract.FDBBackup) int {
	for i, entry := range slices.Backward(entries) {
		if !fdbbackup.IsPlan(entry) && (hasData(entry) || runs(entry)) {
			return i
		}
	}
	return -1
}

// deletableSoon is how many seconds before a turn may delete a backup we stop to describe it: the database has another clock, and
// a description takes time.
const deletableSoon = 3600

// Deletable returns the places of an object's older backups that a turn may delete at any time, as of now in Unix seconds. They
// must not be described: a description writes properties into a container, and would recreate one that is being deleted.
func Deletable(objects *gather.Objects, now int64) []contract.FDBPlace {
	entries := objects.View().Backups
	at := newest(entries)
	before, after, err := bounds(objects.Object.Spec.Expiry, now)
	if at < 0 || err != nil || before <= 0 {
		return nil
	}
	if oldest := entries[at].Oldest; after != 0 && oldest != nil && oldest.Time > after+deletableSoon {
		return nil // it does not hold what must stay restorable for a while
	}
	return superseded(objects, entries, at)
}

// superseded returns the places of the entries before index at that have data and do not run. A place that another entry shares
// is left out.
func superseded(objects *gather.Objects, entries []contract.FDBBackup, at int) []contract.FDBPlace {
	var kept []string
	for i, entry := range entries {
		if i >= at || fdbbackup.IsPlan(entry) || runs(entry) {
			kept = append(kept, fdb.ContainerOf(entry.URL))
		}
	}
	var places []contract.FDBPlace
	for _, entry := range entries[:at] {
		place, known := placeOf(entry.URL)
		if known && hasData(entry) && !slices.Contains(kept, place.Container) && locked(objects, entry.URL) == "" {
			places = append(places, place)
			kept = append(kept, place.Container)
		}
	}
	return places
}

// planDelete leaves out plans: what is in their place, if anything, may belong to somebody else, and have kept the backup from
// being started.
func planDelete(objects *gather.Objects) contract.FDBExpiryPlan {
	object := objects.Object
	requested := object.Spec.Expiry.DeletionFinalizer
	switch {
	case object.DeletionTimestamp.IsZero():
		return outcome(contract.FDBTurnNothing, "the FoundationDBBackup is not being deleted")
	case !controllerutil.ContainsFinalizer(object, fdbv1alpha1.FinalizerDelete), requested != nil && !*requested:
		return outcome(contract.FDBTurnNothing, "the data stay, as the spec says")
	case controllerutil.ContainsFinalizer(object, fdbv1alpha1.FinalizerStop):
		return outcome(contract.FDBTurnNotYet, "the backup is not stopped yet: it still writes")
	}
	var plan contract.FDBExpiryPlan
	var elsewhere []string
	for _, entry := range objects.View().Backups {
		if fdbbackup.IsPlan(entry) {
			continue
		}
		place, known := placeOf(entry.URL)
		if !known {
			elsewhere = append(elsewhere, fdb.Redact(entry.URL, nil))
			continue
		}
		if problem := locked(objects, entry.URL); problem != "" {
			return outcome(contract.FDBTurnNotYet, "%s; to delete the FoundationDBBackup and keep its data, set "+
				"spec.expiry.deletionFinalizer to false", problem)
		}
		if !slices.ContainsFunc(plan.Delete, func(other contract.FDBPlace) bool { return other.Container == place.Container }) {
			plan.Delete = append(plan.Delete, place)
		}
	}
	if len(elsewhere) > 0 {
		plan.Message = fdb.Bound("not in an object store, and left: "+strings.Join(elsewhere, ", "), maxMessage)
	}
	switch {
	case len(plan.Delete) == 0:
		plan.Outcome = contract.FDBTurnNothing
		plan.Message = cmp.Or(plan.Message, "there are no data")
		return plan
	case Version(objects) == "":
		return outcome(contract.FDBTurnFailed, "it is not known which version of FoundationDB deletes the data: set annotation %s "+
			"to one such as 7.3.63", fdbv1alpha1.AnnotationClusterVersion)
	}
	return plan
}

// Covers says why a step does more than the present plan, empty if it does not. The object may have changed since the step was
// planned.
func Covers(plan contract.FDBExpiryPlan, step contract.FDBPodStep) string {
	const changed = "the FoundationDBBackup has changed: the next turn decides again"
	has := func(place contract.FDBPlace) bool {
		return slices.ContainsFunc(plan.Delete, func(p contract.FDBPlace) bool { return p.Container == place.Container })
	}
	wanted, now := step.Expire, plan.Expire
	switch {
	case plan.Outcome != "":
		return changed + ": " + plan.Message
	case slices.ContainsFunc(step.Delete, func(place contract.FDBPlace) bool { return !has(place) }),
		wanted != nil && (now == nil || wanted.Container != now.Container || wanted.Before > now.Before),
		wanted != nil && now.RestorableAfter != 0 && (wanted.RestorableAfter == 0 || wanted.RestorableAfter > now.RestorableAfter):
		return changed
	}
	return ""
}

func placeOf(url string) (contract.FDBPlace, bool) {
	container := fdb.ContainerOf(url)
	return contract.FDBPlace{URL: url, Container: container}, container != ""
}

// locked says why the credentials do not open a container; empty if they do. Without its account a tool would wait for ever.
func locked(objects *gather.Objects, url string) string {
	place, err := fdb.ParseURL(url)
	switch {
	case err != nil:
		return err.Error()
	case objects.Credentials == nil && objects.Problem != nil:
		return credentialsProblem(objects)
	}
	if lacking := fdb.Lacking(objects.Accounts, place); lacking != "" {
		return fmt.Sprintf("the credentials file in Secret %q %s", objects.Object.Spec.Credentials.SecretName, lacking)
	}
	return ""
}

// credentialsProblem says what is wrong with the Secret. A problem of the cluster is found first and hides it.
func credentialsProblem(objects *gather.Objects) string {
	switch objects.Problem.Reason {
	case fdbv1alpha1.ReasonSecretMissing, fdbv1alpha1.ReasonCredentialsInvalid:
		return objects.Problem.Message
	}
	return fmt.Sprintf("there is no valid credentials file in Secret %q", objects.Object.Spec.Credentials.SecretName)
}

func runs(entry contract.FDBBackup) bool {
	switch entry.State {
	case fdb.StateSubmitted, fdb.StateRunning, fdb.StateRunningDifferentially:
		return true
	}
	return false
}

func hasData(entry contract.FDBBackup) bool { return entry.Oldest != nil || entry.Latest != nil }
