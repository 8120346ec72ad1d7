package policy

import (
	"encoding/json"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"holdfast.dev/holdfast/workflows/contract"
)

// DefaultTurnTimeout is Queue.TurnTimeout if the policy does not set it: Velero's own limit for item operations.
const DefaultTurnTimeout = 4 * time.Hour

// maxWeight bounds the turns of a namespace in one round.
const maxWeight = 1000

// Queue says how many unfinished objects Velero is handed at a time, and how namespaces share the turns. Its zero value hands
// everything to Velero at once.
type Queue struct {
	// MaxActive is how many unfinished Backups Velero is handed, and MaxActiveRestores how many Restores; 0 is any number.
	MaxActive         int `json:"maxActive,omitempty"`
	MaxActiveRestores int `json:"maxActiveRestores,omitempty"`
	// Weights are the turns of namespaces in one round. The first that selects a namespace counts; 1 if none does.
	Weights []Weight `json:"weights,omitempty"`
	// TurnTimeout is how long a turn lasts at most, whatever Velero does; DefaultTurnTimeout if it is not set.
	TurnTimeout metav1.Duration `json:"turnTimeout,omitempty"`
}

// Weight gives the namespaces that it selects so many turns in one round.
type Weight struct {
	// NamespaceSelector selects namespaces by their labels; nil selects none, an empty one all.
	NamespaceSelector *metav1.LabelSelector `json:"namespaceSelector"`
	Weight            int                   `json:"weight"`
}

// Timeout returns how long a turn lasts at most.
func (q Queue) Timeout() time.Duration {
	if q.TurnTimeout.Duration > 0 {
		return q.TurnTimeout.Duration
	}
	return DefaultTurnTimeout
}

// WeightOf returns the turns in one round of a namespace with these labels.
func (q Queue) WeightOf(namespace map[string]string) int {
	for _, weight := range q.Weights {
		if selects(weight.NamespaceSelector, namespace) {
			return weight.Weight
		}
	}
	return 1
}

func decodeQueue(name string, value json.RawMessage, into *Queue) []string {
	problems := decodeStruct(name, value, into)
	for _, bound := range []struct {
		field    string
		negative bool
		tooLarge bool
	}{
		{"maxActive", into.MaxActive < 0, into.MaxActive > contract.MaxTurns},
		{"maxActiveRestores", into.MaxActiveRestores < 0, into.MaxActiveRestores > contract.MaxTurns},
		{"turnTimeout", into.TurnTimeout.Duration < 0, false},
	} {
		switch {
		case bound.negative:
			problems = append(problems, fmt.Sprintf("%s.%s must not be negative", name, bound.field))
		case bound.tooLarge:
			problems = append(problems, fmt.Sprintf("%s.%s must be at most %d", name, bound.field, contract.MaxTurns))
		}
	}
	if timeout := into.TurnTimeout.Duration; timeout > 0 && timeout < time.Minute {
		problems = append(problems, name+".turnTimeout must be at least 1m0s")
	}
	for i, weight := range into.Weights {
		path := fmt.Sprintf("%s.weights[%d]", name, i)
		problems = append(problems, checkSelector(path, weight.NamespaceSelector)...)
		if weight.Weight < 1 || weight.Weight > maxWeight {
			problems = append(problems, fmt.Sprintf("%s.weight must be between 1 and %d", path, maxWeight))
		}
	}
	return problems
}
