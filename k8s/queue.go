package k8s

import (
	"cmp"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Queued is a Velero Backup or Restore in Velero's queue.
type Queued struct {
	Name    string
	Created metav1.Time
	// Position is 0 unless it is known without counting, for example from Velero's status.
	Position int
}

// QueuePositions returns the position of each object by name: the known one, or else 1 + the number of objects created before
// it.
func QueuePositions(ahead []Queued) map[string]int {
	slices.SortFunc(ahead, func(a, b Queued) int {
		return cmp.Or(a.Created.Compare(b.Created.Time), cmp.Compare(a.Name, b.Name))
	})
	positions := make(map[string]int, len(ahead))
	older := 0
	for i, queued := range ahead {
		if i > 0 && ahead[i-1].Created.Before(&queued.Created) {
			older = i
		}
		positions[queued.Name] = cmp.Or(queued.Position, older+1)
	}
	return positions
}
