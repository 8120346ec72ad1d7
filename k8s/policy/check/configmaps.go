package check

import (
	"slices"
	"strings"

	"github.com/google/uuid"
)

// OwnConfigMap reports whether a name is, or may be, that of one of Holdfast's own ConfigMaps: its policy, its settings, its
// records, and the modifiers of restores, which have the names of their Velero Restores.
func OwnConfigMap(name string) bool {
	const uuidLength = 36
	return strings.HasPrefix(name, "holdfast") || (len(name) > uuidLength && uuid.Validate(name[len(name)-uuidLength:]) == nil)
}

// ReservedConfigMap refuses a reference to one of Holdfast's own ConfigMaps. field is its path in the object.
func ReservedConfigMap(field string) error {
	return Invalid("%s is restricted, must not name a ConfigMap of Holdfast, "+
		`whose name begins with "holdfast" or ends in a UUID`, field)
}

// Concealed replaces each complaint about a ConfigMap in a message of Velero about a Backup or Restore. Such a complaint may
// quote a ConfigMap that is no policy or modifier, and tenants can name ConfigMaps that they may not read. Every complaint
// about a ConfigMap is replaced, because other versions of Velero may quote elsewhere.
func Concealed(complaint string) string {
	lower := strings.ToLower(complaint)
	about := func(part string) bool { return strings.Contains(lower, part) }
	if !slices.ContainsFunc([]string{"configmap", "resource polic", "volume polic", "resource modifier"}, about) {
		return complaint
	}
	return "Velero cannot use the ConfigMap that resourcePolicy or resourceModifier names, or one that the administrator has set: " +
		"it is not there, or not what Velero expects. Its message may quote the ConfigMap and is not repeated here; " +
		"administrators find it in the status of the Velero object"
}

// ConcealedAll is Concealed of each; nil of nil.
func ConcealedAll(complaints []string) []string {
	concealed := slices.Clone(complaints)
	for i := range concealed {
		concealed[i] = Concealed(concealed[i])
	}
	return concealed
}
