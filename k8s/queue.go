package k8s

import (
	"cmp"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Queued is a Velero Backup or Restore that Velero has to get through.
type Queued struct {
	Name    string
	Created metav1.Time
	// Position is known otherwise than by counting, for example because Velero tells it; 0 if it is not.
	Position int
}

// QueuePositions returns for each object by name the position that is known, or else 1 + the number of objects created
// before it.
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
