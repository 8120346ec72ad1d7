package buckets

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"

	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"

	"holdfast.dev/holdfast/k8s/objectstore"
	"holdfast.dev/holdfast/k8s/velero"
)

// FilesAnnotation on a Velero Backup in a tenant's location says which files of it were read within limits, by Fingerprint. It
// is empty while the Backup's PodVolumeBackups are not in the cluster yet.
const FilesAnnotation = "holdfast.dev/inspected-files"

// Pending reports whether a Backup was brought into the cluster, and its PodVolumeBackups may be missing still.
func Pending(made *velerov1.Backup) bool {
	fingerprint, found := made.Annotations[FilesAnnotation]
	return found && fingerprint == ""
}

// Fingerprint identifies the files of a backup that Velero reads.
func Fingerprint(files []objectstore.BackupFile) string {
	read := slices.SortedFunc(slices.Values(files), func(a, b objectstore.BackupFile) int { return cmp.Compare(a.Name, b.Name) })
	sum := sha256.New()
	for _, file := range read {
		fmt.Fprintf(sum, "%q %q\n", file.Name, file.Version)
	}
	return hex.EncodeToString(sum.Sum(nil)[:16])
}

// Action is what is due for one backup.
type Action string

// The actions.
const (
	// Bring the backup, which only the bucket has, into the cluster.
	Bring Action = "bring"
	// Inspect files that are new, or have changed.
	Inspect Action = "inspect"
	// Remove the Velero Backup: its files are gone.
	Remove Action = "remove"
)

// Step is an action for the backup of that name.
type Step struct {
	Action Action
	Name   string
	// Files are what the bucket has of it, Made its Velero Backup: nil if there is none.
	Files []objectstore.BackupFile
	Made  *velerov1.Backup
}

// Steps returns what is due for a location, by the files in its bucket and its Backups in the cluster.
func Steps(stored map[string][]objectstore.BackupFile, present []velerov1.Backup) []Step {
	var steps []Step
	there := map[string]bool{}
	for i := range present {
		made := &present[i]
		there[made.Name] = true
		files, inBucket := stored[made.Name]
		switch step := (Step{Name: made.Name, Files: files, Made: made}); {
		case !velero.Written(made.Status.Phase) || !made.DeletionTimestamp.IsZero():
		case !inBucket && velero.Usable(made.Status.Phase):
			step.Action = Remove
			steps = append(steps, step)
		case inBucket && made.Annotations[FilesAnnotation] != Fingerprint(files):
			step.Action = Inspect
			steps = append(steps, step)
		}
	}
	for name, files := range stored {
		if !there[name] && objectstore.HasMetadata(files) {
			steps = append(steps, Step{Action: Bring, Name: name, Files: files})
		}
	}
	return steps
}

// InOrder orders steps: what takes a Backup away from Velero comes first. shuffle, if not nil, varies the order of the others, so
// that those that take long, or come to nothing, are not always the first.
func InOrder(steps []Step, shuffle func(n int, swap func(i, j int))) []Step {
	if shuffle != nil {
		shuffle(len(steps), func(i, j int) { steps[i], steps[j] = steps[j], steps[i] })
	}
	rank := []Action{Remove, Inspect, Bring}
	slices.SortStableFunc(steps, func(a, b Step) int {
		return cmp.Compare(slices.Index(rank, a.Action), slices.Index(rank, b.Action))
	})
	return steps
}
