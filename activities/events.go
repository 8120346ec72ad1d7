package activities

import (
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"

	"holdfast.dev/holdfast/k8s/shorten"
)

// Reasons of Events on objects of several kinds.
const (
	EventDeleting  = "Deleting"
	EventReleased  = "Released"
	EventCorrected = "StatusCorrected"
	EventRetried   = "Retried"
	EventStalled   = "VeleroStalled"
)

// RecordEvent records an Event about an object, best effort.
func RecordEvent(events events.EventRecorder, object runtime.Object, kind, reason, action, note string, args ...any) {
	events.Eventf(object, nil, kind, reason, action, "%s", shorten.Text(fmt.Sprintf(note, args...), shorten.MaxEventNoteBytes))
}
