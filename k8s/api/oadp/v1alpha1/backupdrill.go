package v1alpha1

import (
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// verifiedMessage is how the message of condition Verified begins: the drill's name and when it had its verdict.
const verifiedMessage, verifiedName, verifiedTime = "RestoreDrill ", ", ", ": "

// Message is the message of condition Verified by the verdict of the drill.
func (d *BackupDrill) Message(text string) string {
	return fmt.Sprint(verifiedMessage, d.Name, verifiedName, d.Concluded.UTC().Format(time.RFC3339), verifiedTime, text)
}

// NewestDrill is the drill whose verdict the status shows; nil if it shows none. A cluster with OADP's own CRD prunes lastDrill:
// what it was follows from the condition there, but for what was measured.
func (s *NonAdminBackupStatus) NewestDrill() *BackupDrill {
	if s.LastDrill != nil {
		return s.LastDrill
	}
	verified := meta.FindStatusCondition(s.Conditions, string(NonAdminConditionVerified))
	if verified == nil {
		return nil
	}
	rest, ours := strings.CutPrefix(verified.Message, verifiedMessage)
	name, rest, _ := strings.Cut(rest, verifiedName)
	stamp, _, _ := strings.Cut(rest, verifiedTime)
	concluded, err := time.Parse(time.RFC3339, stamp)
	if !ours || err != nil {
		return nil
	}
	return &BackupDrill{Name: name, Concluded: metav1.NewTime(concluded)}
}
