package synchronization

import (
	"slices"
	"strings"

	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"

	"holdfast.dev/holdfast/k8s/ledger"
	"holdfast.dev/holdfast/k8s/owner"
)

// Lists are the objects that exist, of the Backups only the metadata. They must be read in the order of the fields.
type Lists struct {
	Backups []metav1.PartialObjectMetadata
	// NABs are the NonAdminBackups, with the name of the Velero Backup for which each was made.
	NABs map[types.NamespacedName]string
	// Entries of the ledger.
	Entries   map[string]ledger.Entry
	Locations map[string]*Location
}

// Candidate is a Velero Backup for which, by the lists, a step may be due.
type Candidate struct {
	Name string
	// Namespace is that of its NonAdminBackup.
	Namespace string
}

// Candidates are the Velero Backups whose NonAdminBackup is not listed and for which a step may be due, one of each namespace
// in turn, and how many are not trusted. Backups that a tenant puts into its bucket in others' names, and released ones, are no
// candidates. shuffle, if not nil, varies the order within a turn, so that candidates without a step are not always the first.
func (l *Lists) Candidates(shuffle func(n int, swap func(i, j int))) (candidates []Candidate, untrusted int) {
	for i := range l.Backups {
		made := &l.Backups[i]
		key, ok := owner.Backup.Proven(made)
		if _, there := l.NABs[key]; !ok || there || !made.DeletionTimestamp.IsZero() {
			continue
		}
		switch l.presume(made, key.Namespace) {
		case Distrust:
			untrusted++
		case Leave, Keep:
		default:
			candidates = append(candidates, Candidate{Name: made.Name, Namespace: key.Namespace})
		}
	}
	slices.SortFunc(candidates, func(a, b Candidate) int {
		return strings.Compare(a.Namespace+"/"+a.Name, b.Namespace+"/"+b.Name)
	})
	if shuffle != nil {
		shuffle(len(candidates), func(i, j int) { candidates[i], candidates[j] = candidates[j], candidates[i] })
	}
	return inTurn(candidates), untrusted
}

// presume decides what can be decided by the metadata. Velero sets the label of the storage location itself, whatever the
// bucket holds; a Backup without it is judged when it is read.
func (l *Lists) presume(made *metav1.PartialObjectMetadata, namespace string) Action {
	if held, labelled := made.Labels[velerov1.StorageLocationLabel]; labelled {
		location := l.Locations[held]
		switch {
		case location == nil && len(held) < validation.LabelValueMaxLength: // Velero has cut off the end of a longer name
			return Leave
		case location != nil && !location.Holds(namespace):
			return Distrust
		}
	}
	if _, entered := l.Entries[made.Name]; entered && State(made) == StateReleased {
		return Keep
	}
	return Make
}

// inTurn orders by turns: the first of each namespace, the second of each, and so on.
func inTurn(candidates []Candidate) []Candidate {
	turns, turn := map[string]int{}, map[string]int{}
	for _, each := range candidates {
		turn[each.Name] = turns[each.Namespace]
		turns[each.Namespace]++
	}
	slices.SortStableFunc(candidates, func(a, b Candidate) int { return turn[a.Name] - turn[b.Name] })
	return candidates
}

// MadeFor reports whether the NonAdminBackup that a Velero Backup names was made for it, and the Backup is not marked so yet.
func (l *Lists) MadeFor(made *metav1.PartialObjectMetadata) bool {
	key, ok := owner.Backup.Proven(made)
	return ok && l.NABs[key] == made.Name && State(made) != StateMade && l.presume(made, key.Namespace) != Distrust
}
