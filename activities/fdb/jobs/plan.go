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

// Version is that of the image in which the tools run: the cluster's, or the one that it last had.
func Version(objects *gather.Objects) string {
	known := ""
	if objects.Cluster != nil {
		known = objects.Cluster.Version
	}
	return cmp.Or(known, objects.Object.Annotations[fdbv1alpha1.AnnotationClusterVersion])
}

// PlanTurn says what a turn has to do that began at a time. Both times are in Unix seconds: of a turn from the future, as a clock
// that was wrong leaves it, nothing is expired that is not old enough now. The caller adds the pods.
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

// planExpire: the newest backup with data is expired, or the one that is about to have some. Those before it may be deleted once
// that one holds what must stay restorable.
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
		return outcome(contract.FDBTurnNothing, "spec.expiry.maxRetention is not set, or longer than time goes back: all data are kept")
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

// bounds are the cutoff and what must stay restorable, in Unix seconds; 0 for what is not asked for.
func bounds(expiry fdbv1alpha1.BackupExpiry, turn int64) (before, after int64, err error) {
	if expiry.MaxRetention == "" {
		return 0, 0, nil
	}
	most, err := time.ParseDuration(expiry.MaxRetention)
	if err != nil || most <= 0 {
		return 0, 0, fmt.Errorf("spec.expiry.maxRetention %.40q is no duration such as 720h", expiry.MaxRetention)
	}
	before = turn - seconds(most)
	if expiry.MinRestorable == "" {
		return before, 0, nil
	}
	least, err := time.ParseDuration(expiry.MinRestorable)
	if err != nil || least < 0 {
		return 0, 0, fmt.Errorf("spec.expiry.minRestorable %.40q is no duration such as 168h", expiry.MinRestorable)
	}
	if least > most { // FoundationDB refuses that in words that do not say why
		return 0, 0, fmt.Errorf("spec.expiry.minRestorable %s is longer than maxRetention %s: nothing could ever expire", least, most)
	}
	return before, turn - seconds(least), nil
}

// seconds rounds up: what is kept is kept a moment longer.
func seconds(d time.Duration) int64 { return int64((d + time.Second - 1) / time.Second) }

// newest is the index of the newest entry with data, or that is about to have some; -1 if there is none.
func newest(entries []contract.FDBBackup) int {
	return lastIndex(entries, func(entry contract.FDBBackup) bool {
		return !fdbbackup.IsPlan(entry) && (hasData(entry) || runs(entry))
	})
}

// deletableSoon is how long before a turn may delete a backup that is already taken for possible: the database's clock is another
// one, and whoever describes the backup takes its time.
const deletableSoon = 3600

// Deletable are the places of the older backups of an object that a turn may delete at any time, as seen at a time in Unix
// seconds. They must not be described: that writes properties into a container, and would bring some of them back.
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

// superseded are the places of the entries before the one at an index that have data and do not run. What another entry shares
// with them stays.
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

// planDelete: plans are not among what is deleted. What is there, if anything, may have been somebody's before, and kept the
// backup from being started.
func planDelete(objects *gather.Objects) contract.FDBExpiryPlan {
	object := objects.Object
	asked := object.Spec.Expiry.DeletionFinalizer
	switch {
	case object.DeletionTimestamp.IsZero():
		return outcome(contract.FDBTurnNothing, "the FoundationDBBackup is not being deleted")
	case !controllerutil.ContainsFinalizer(object, fdbv1alpha1.FinalizerDelete), asked != nil && !*asked:
		return outcome(contract.FDBTurnNothing, "the data are to stay")
	case controllerutil.ContainsFinalizer(object, fdbv1alpha1.FinalizerStop):
		return outcome(contract.FDBTurnNotYet, "the backup is not stopped yet: it would write on")
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
			return outcome(contract.FDBTurnNotYet, "%s; to let the FoundationDBBackup go without its data, set "+
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
		return outcome(contract.FDBTurnFailed, "nobody knows which version of FoundationDB to delete with: set annotation %s to one "+
			"such as 7.3.63", fdbv1alpha1.AnnotationClusterVersion)
	}
	return plan
}

// Covers says why a step is not, or no more than, what a plan of now has its turn do; empty if it is. The object may have changed
// since the step was planned.
func Covers(plan contract.FDBExpiryPlan, step contract.FDBPodStep) string {
	const changed = "the FoundationDBBackup has changed: the next turn decides anew"
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

// JobOf is the job of the turn of a step.
func JobOf(step contract.FDBPodStep) contract.FDBJob {
	switch {
	case step.Job != contract.FDBJobNone:
		return step.Job
	case step.Expire != nil, step.Number == 2: // a turn that deletes has one pod only
		return contract.FDBJobExpire
	}
	return contract.FDBJobDelete
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

// credentialsProblem: what is wrong with the cluster is found first, and hides what is wrong with the Secret.
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

func lastIndex(entries []contract.FDBBackup, is func(contract.FDBBackup) bool) int {
	for i, entry := range slices.Backward(entries) {
		if is(entry) {
			return i
		}
	}
	return -1
}
