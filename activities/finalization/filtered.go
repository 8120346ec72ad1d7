package finalization

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"holdfast.dev/holdfast/activities/restored"
	"holdfast.dev/holdfast/k8s/objectstore"
	"holdfast.dev/holdfast/k8s/policy/restorespec"
	"holdfast.dev/holdfast/k8s/shorten"
)

// Filtered is what a restore from a tenant's storage location left out because its owner may not create it.
type Filtered struct {
	// Objects were left out: `<Kind> <name>, <name>`, as many names as fit a line. With a label selector it is `<Kind>`: which
	// objects the selector matches is not known.
	Objects []string
	// Shadowed are objects that were left out for a namesake of their kind.
	Shadowed []ShadowedKind
	// LeftOut counts them all.
	LeftOut int
	// Derived are objects that controllers create again, in the same form.
	Derived []string
	// Refused counts the objects that admission policy holdfast-restores refused. Velero's errors name them.
	Refused int
}

// ShadowedKind is a kind that a restore left out although the location's owner may create it.
type ShadowedKind struct {
	// Resource is its name, Namesake the resource of the same plural that the owner may not create.
	Resource, Namesake string
	// Objects are those of the kind, in the form of Filtered.Objects.
	Objects []string
}

// filtered returns, in a fixed order, the objects that the tenant asked for and that the restore left out, and counts refused
// ones.
func filtered(c comparison) Filtered {
	found := Filtered{Refused: refusals(c.Results)}
	for _, listed := range slices.Sorted(maps.Keys(c.Backup)) {
		kind, resource := restored.KindOf(listed)
		brought := c.Brought(listed, kind.Kind)
		names := slices.DeleteFunc(c.Named(listed), brought.Has)
		if len(names) == 0 || restored.NotReported.Has(kind) || restorespec.SkippedByUpdate(c.Spec, resource) ||
			restored.AsksFor(c.Spec, kind, resource) || !restored.AsksFor(c.asked, kind, resource) {
			continue
		}
		objects, count := inLines(kind.Kind, names), len(names)
		if c.Selects() {
			objects, count = []string{kind.Kind}, 1
		}
		namesake, shadowed := c.shadowed[resource.String()]
		switch {
		case restored.Derived.Has(kind):
			found.Derived = append(found.Derived, inLines(kind.Kind, names)...)
			continue
		case shadowed:
			found.Shadowed = append(found.Shadowed, ShadowedKind{resource.String(), namesake, objects})
		default:
			found.Objects = append(found.Objects, objects...)
		}
		found.LeftOut += count
	}
	return found
}

// inLines lists names after their kind, in lines that leave room for a text about them.
func inLines(kind string, names []string) []string {
	const most = maxLineBytes - 100
	var lines []string
	for _, name := range names {
		last := len(lines) - 1
		if last < 0 || len(lines[last])+len(name) > most {
			lines = append(lines, kind+" "+name)
			continue
		}
		lines[last] += ", " + name
	}
	return lines
}

// refusal is the policy's name in the API server's errors.
const refusal = "ValidatingAdmissionPolicy 'holdfast-restores'"

func refusals(results objectstore.Results) int {
	count := 0
	for _, result := range results {
		for _, lines := range append(slices.Collect(maps.Values(result.Namespaces)), result.Velero, result.Cluster) {
			for _, line := range lines {
				if strings.Contains(line, refusal) && !strings.HasPrefix(line, author) {
					count++
				}
			}
		}
	}
	return count
}

// describe adds lines about what was left out. Velero has reported what was refused.
func (f Filtered) describe(found *Findings) {
	for _, objects := range f.Objects {
		add(&found.Warnings.Namespace, "%s: left out, since the location's owner could not have made it", objects)
	}
	for _, kind := range f.Shadowed {
		for _, objects := range kind.Objects {
			add(&found.Warnings.Namespace, "%s: left out with all %s, since the location's owner could not have made %s",
				objects, kind.Resource, kind.Namesake)
		}
	}
	for _, objects := range f.Derived {
		add(&found.Warnings.Namespace, "%s: left out, controllers recreate what they need", objects)
	}
	found.LeftOut, found.Refused, found.Shadowed = f.LeftOut, f.Refused, f.shadowedKinds()
}

// maxShadowedKinds is how many kinds condition Filtered names. The lines name all.
const maxShadowedKinds = 5

// shadowedKinds are the names of the shadowed kinds, each with its namesake.
func (f Filtered) shadowedKinds() []string {
	var kinds []string
	for _, kind := range f.Shadowed {
		kinds = append(kinds, fmt.Sprintf("%s (%s)", kind.Resource, kind.Namesake))
	}
	kinds = slices.Compact(kinds) // a backup may hold several versions of a kind
	if more := len(kinds) - maxShadowedKinds; more > 0 {
		kinds = append(kinds[:maxShadowedKinds], fmt.Sprintf("%d more", more))
	}
	return kinds
}

// filteredMessage says what a restore left out, and what to do; empty if there is nothing to say.
func filteredMessage(leftOut, refused int, shadowed []string) string {
	if leftOut+refused == 0 {
		return ""
	}
	text := fmt.Sprintf("a restore from a NonAdminBackupStorageLocation brings only what the policy's ClusterRole may create: "+
		"%d left out, %d refused by the API server. status.finalization and the restore's results (NonAdminDownloadRequest, "+
		"RestoreResults) name them. A user with the rights can apply them from a download of the backup "+
		"(BackupContents)", leftOut, refused)
	if len(shadowed) > 0 {
		text += "; whole kinds are left out, because the role may not create their namesakes of another API group (ask an " +
			"administrator to allow it): " + strings.Join(shadowed, ", ")
	}
	return shorten.Text(text, maxMessageBytes)
}
