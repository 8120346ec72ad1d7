package buckets_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"holdfast.dev/holdfast/activities/buckets"
	"holdfast.dev/holdfast/k8s/objectstore"
)

func files(name, version string) []objectstore.BackupFile {
	return []objectstore.BackupFile{
		{Name: name + ".tar.gz", Version: version},
		{Name: "velero-backup.json", Version: "m"},
	}
}

func TestWhatIsDueForALocation(t *testing.T) {
	read := map[string]string{buckets.FilesAnnotation: buckets.Fingerprint(files("b", "1"))}
	made := func(phase velerov1.BackupPhase, annotations map[string]string) []velerov1.Backup {
		return []velerov1.Backup{{
			ObjectMeta: metav1.ObjectMeta{Name: "b", Annotations: annotations}, Status: velerov1.BackupStatus{Phase: phase},
		}}
	}
	stored := func(files []objectstore.BackupFile) map[string][]objectstore.BackupFile {
		return map[string][]objectstore.BackupFile{"b": files}
	}
	const completed, failed = velerov1.BackupPhaseCompleted, velerov1.BackupPhaseFailed
	for name, tt := range map[string]struct {
		stored  map[string][]objectstore.BackupFile
		present []velerov1.Backup
		want    buckets.Action
	}{
		"only the bucket has it":            {stored(files("b", "1")), nil, buckets.Bring},
		"a folder that holds no backup":     {stored(files("b", "1")[:1]), nil, ""},
		"its files but one are gone":        {stored(nil), made(completed, read), buckets.Inspect},
		"Velero finishes it":                {stored(files("b", "1")), made(velerov1.BackupPhaseFinalizing, nil), buckets.Inspect},
		"it was never read":                 {stored(files("b", "1")), made(completed, nil), buckets.Inspect},
		"it was read":                       {stored(files("b", "1")), made(completed, read), ""},
		"it has changed since":              {stored(files("b", "2")), made(completed, read), buckets.Inspect},
		"it failed, and has changed":        {stored(files("b", "2")), made(failed, read), buckets.Inspect},
		"Velero writes it":                  {stored(files("b", "2")), made(velerov1.BackupPhaseInProgress, nil), ""},
		"Velero has not begun":              {nil, made(velerov1.BackupPhaseNew, nil), ""},
		"its files are gone":                {nil, made(completed, read), buckets.Remove},
		"it failed, and never had files":    {nil, made(failed, nil), ""},
		"it is in the cluster in part only": {stored(files("b", "1")), made(completed, map[string]string{buckets.FilesAnnotation: ""}), buckets.Inspect},
	} {
		t.Run(name, func(t *testing.T) {
			var got buckets.Action
			for _, step := range buckets.Steps(tt.stored, tt.present) {
				got = step.Action
			}
			assert.Equal(t, tt.want, got)
		})
	}
}

// What takes a Backup away from Velero does not wait for what a full bucket may bring.
func TestWhatProtectsVeleroComesFirst(t *testing.T) {
	stored := map[string][]objectstore.BackupFile{"a": files("a", "1"), "b": files("b", "1")}
	present := []velerov1.Backup{
		{ObjectMeta: metav1.ObjectMeta{Name: "b"}, Status: velerov1.BackupStatus{Phase: velerov1.BackupPhaseCompleted}},
		{ObjectMeta: metav1.ObjectMeta{Name: "c"}, Status: velerov1.BackupStatus{Phase: velerov1.BackupPhaseCompleted}},
	}
	var got []string
	for _, step := range buckets.InOrder(buckets.Steps(stored, present), nil) {
		got = append(got, string(step.Action)+" "+step.Name)
	}
	assert.Equal(t, []string{"remove c", "inspect b", "bring a"}, got)
}

func TestAFingerprintIsOfWhatVeleroReads(t *testing.T) {
	one := buckets.Fingerprint(files("b", "1"))
	assert.NotEqual(t, one, buckets.Fingerprint(files("b", "2")))
	assert.NotEqual(t, one, buckets.Fingerprint(files("b", "1")[:1]), "a file less")
}
