package trim

import (
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Limits of what is kept, as its size in memory.
const (
	// SpecBytes bounds a spec that is kept to be judged.
	SpecBytes = 8 << 10
	// LocationBytes bounds a storage location, which may hold certificates: there are few.
	LocationBytes = 32 << 10
	// MapBytes bounds labels that nothing reads.
	MapBytes  = 4 << 10
	textBytes = 4 << 10
	NameBytes = 253
	// entries bounds a list of our own, because a status may be forged.
	entries = 32
)

// Text returns the beginning of a text.
func Text(value string) string { return Clip(value, textBytes) }

// Clip returns the beginning of a text in memory of its own.
func Clip(value string, size int) string {
	if len(value) <= size {
		return value
	}
	return strings.Clone(value[:size])
}

// Name drops a value that is too long for the name of an object.
func Name[S ~string](value S) S {
	if len(value) > NameBytes {
		return ""
	}
	return value
}

// Conditions keeps those of the types that are read.
func Conditions[S ~string](all []metav1.Condition, types ...S) []metav1.Condition {
	var kept []metav1.Condition
	for _, kind := range types {
		if found := meta.FindStatusCondition(all, string(kind)); found != nil {
			kept = append(kept, Condition(*found))
		}
	}
	return kept
}

// Condition bounds a condition.
func Condition(of metav1.Condition) metav1.Condition {
	of.Type, of.Reason, of.Message = Name(of.Type), Name(of.Reason), Text(of.Message)
	return of
}

// Reasons keeps the last conditions without their messages.
func Reasons(all []metav1.Condition) []metav1.Condition {
	kept := Last(all)
	for i, each := range kept {
		kept[i].Type, kept[i].Reason, kept[i].Message = Name(each.Type), Name(each.Reason), ""
	}
	return kept
}

// Last copies the last entries of a list.
func Last[T any](all []T) []T { return append([]T(nil), all[max(0, len(all)-entries):]...) }
