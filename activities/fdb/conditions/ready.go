package conditions

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	fdbv1alpha1 "holdfast.dev/holdfast/k8s/api/fdb/v1alpha1"
	"holdfast.dev/holdfast/workflows/contract"
)

// Outcome is a condition without its type and times.
type Outcome struct {
	Status          metav1.ConditionStatus
	Reason, Message string
}

// rank is the importance of a condition for Ready: the lowest one decides Ready's status, reason and message.
type rank int

const (
	// rankFault: something is wrong, and in most cases somebody has to act. Ready is False.
	rankFault rank = iota
	// rankUnknown: it is not known whether the backup or the restore is as the spec says. Ready is Unknown.
	rankUnknown
	// rankUnderWay: it is becoming what the spec says, and nobody has to act. Ready is False.
	rankUnderWay
)

// precedence is the order of types within a rank: a condition comes before those that cannot be repaired while it holds.
var precedence = []string{
	fdbv1alpha1.ConditionMisconfiguredBackup, fdbv1alpha1.ConditionMisconfiguredRestore,
	fdbv1alpha1.ConditionIncorrectDeployment,
	fdbv1alpha1.ConditionIncorrectBackupState, fdbv1alpha1.ConditionIncorrectRestoreState,
	fdbv1alpha1.ConditionDeploymentRollingOut,
}

// unknown are the reasons of conditions which say that the state could not be read.
var unknown = []string{fdbv1alpha1.ReasonClusterUnreachable, fdbv1alpha1.ReasonStateUnknown, fdbv1alpha1.ReasonNoWorker}

func rankOf(condition contract.FDBCondition) rank {
	switch {
	case slices.Contains(unknown, condition.Reason):
		return rankUnknown
	case fdbv1alpha1.UnderWay(condition.Reason):
		return rankUnderWay
	}
	return rankFault
}

// Ready returns what condition Ready says: otherwise if no condition holds, and else what the most important one says. That is
// the one of the lowest rank, and among these the first by precedence of its type.
func Ready(held []contract.FDBCondition, otherwise Outcome) Outcome {
	if len(held) == 0 {
		return otherwise
	}
	first := slices.MinFunc(held, func(a, b contract.FDBCondition) int {
		if byRank := rankOf(a) - rankOf(b); byRank != 0 {
			return int(byRank)
		}
		return slices.Index(precedence, a.Type) - slices.Index(precedence, b.Type)
	})
	status := metav1.ConditionFalse
	if rankOf(first) == rankUnknown {
		status = metav1.ConditionUnknown
	}
	return Outcome{Status: status, Reason: first.Reason, Message: first.Message}
}
