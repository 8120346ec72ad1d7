package metrics

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Unfinished counts objects that are under way or wait, and names the one that was created first.
type Unfinished struct {
	Number int
	// Kind, Namespace, Name and Created are the oldest one's; zero if there is none. No metric shows them.
	Kind, Namespace, Name string
	Created               time.Time
}

// Add adds an object.
func (u *Unfinished) Add(kind string, object metav1.Object) {
	created := object.GetCreationTimestamp().Time
	if u.Number++; u.Number == 1 || created.Before(u.Created) {
		u.Kind, u.Namespace, u.Name, u.Created = kind, object.GetNamespace(), object.GetName(), created
	}
}
