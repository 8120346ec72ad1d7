package objectstore

import (
	"slices"
	"strings"
)

// Keys of Results.
const (
	WarningsKey = "warnings"
	ErrorsKey   = "errors"
)

// Results are the messages of a backup or restore, by WarningsKey and ErrorsKey.
type Results map[string]Result

// Result holds messages about Velero itself, about cluster-scoped objects, or about a namespace's objects.
type Result struct {
	Velero     []string            `json:"velero,omitempty"`
	Cluster    []string            `json:"cluster,omitempty"`
	Namespaces map[string][]string `json:"namespaces,omitempty"`
}

// Replace replaces an author's earlier lines by new ones, each marked with the author, and reports whether that changed
// anything. Doing it again with the same lines therefore changes nothing. Other authors' lines stay as they are.
func (r Results) Replace(key, author string, lines Result) bool {
	mark := author + ": "
	before := r[key]
	after := Result{
		Velero:     replaced(before.Velero, lines.Velero, mark),
		Cluster:    replaced(before.Cluster, lines.Cluster, mark),
		Namespaces: map[string][]string{},
	}
	for namespace, present := range before.Namespaces {
		after.Namespaces[namespace] = replaced(present, lines.Namespaces[namespace], mark)
	}
	for namespace, more := range lines.Namespaces {
		if _, known := before.Namespaces[namespace]; !known {
			after.Namespaces[namespace] = replaced(nil, more, mark)
		}
	}
	changed := !slices.Equal(before.Velero, after.Velero) || !slices.Equal(before.Cluster, after.Cluster)
	for namespace, present := range after.Namespaces {
		if len(present) == 0 {
			delete(after.Namespaces, namespace)
		}
		changed = changed || !slices.Equal(before.Namespaces[namespace], present)
	}
	if changed {
		r[key] = after
	}
	return changed
}

func replaced(present, lines []string, mark string) []string {
	var others, before, after []string
	for _, line := range present {
		if strings.HasPrefix(line, mark) {
			before = append(before, line)
		} else {
			others = append(others, line)
		}
	}
	for _, line := range lines {
		after = append(after, mark+line)
	}
	if slices.Equal(before, after) {
		return present
	}
	return append(others, after...)
}
