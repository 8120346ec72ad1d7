package outage_test

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/stretchr/testify/require"
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
	"holdfast.dev/holdfast/test/env"
	"holdfast.dev/holdfast/test/outage"
)

// effects is what a run leaves behind, with the names and times of that run taken out. Calls are not compared: a repeated
// look is no difference, a repeated object or write is.
type effects struct {
	// Object is the NonAdminBackup: spec, finalizers and status; empty if it is gone.
	Object string
	// Location is the NonAdminBackupStorageLocation in the same way, and Made is what the OADP namespace holds for it.
	Location string
	Made     []string
	// Restore is the NonAdminRestore in the same way, Restored what came of it.
	Restore  string
	Restored restored
	// Plan is the status of the BackupPlan before its deletion.
	Plan string
	// Drill is the status of the RestoreDrill, and OfDrill what exists that was made for it.
	Drill   string
	OfDrill []string
	// Backups, Requests are the Velero objects whose origin is the namespace.
	Backups  []string
	Requests []string
	// Files are the backup's and the restore's in the bucket.
	Files []string
	// Writes are those that the API server took from the workers, but for Events and patches of status, whose number depends
	// on how many of Velero's phases were seen.
	Writes []string
}

var (
	anyTime  = regexp.MustCompile(`\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}Z`)
	anyStamp = regexp.MustCompile(`\b\d{14}\b`) // in the name of a plan's run
	anyUUID  = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`)
)

// plain takes out what differs from run to run.
func (c *testCase) plain(text string) string {
	text = strings.ReplaceAll(text, c.namespace, "NAMESPACE")
	if name := c.drillName(); name != "" {
		text = strings.ReplaceAll(text, name, "DRILL")
	}
	text = anySeconds.ReplaceAllString(text, "restored in TIME")
	text = anyStamp.ReplaceAllString(anyTime.ReplaceAllString(text, "TIME"), "STAMP")
	return anyUUID.ReplaceAllString(text, "UUID")
}

func (c *testCase) effects() effects {
	c.t.Helper()
	c.insteadIfTakenUpTwice()
	e := effects{Object: c.object(), Location: c.locationObject(), Made: c.madeForLocation(), Restore: c.restoreObject(), Plan: c.planned}
	if c.nar != nil {
		e.Restored = c.restored()
	}
	e.Drill, e.OfDrill = c.drillObject(), c.ofDrill()
	ours := client.MatchingLabels{oadpv1alpha1.OadpLabel: oadpv1alpha1.OadpLabelValue}
	backups, err := c.veleroBackups()
	require.NoError(c.t, err)
	for i := range backups {
		made := &backups[i]
		e.Backups = append(e.Backups, c.plain(fmt.Sprintf("%s %s %s", made.Name, made.Status.Phase, asJSON(made.Spec))))
	}
	var deletions velerov1.DeleteBackupRequestList
	require.NoError(c.t, c.admin.List(c.t.Context(), &deletions, client.InNamespace(env.OADPNamespace), ours))
	for i := range deletions.Items {
		if deletions.Items[i].Annotations[oadpv1alpha1.NabOriginNamespaceAnnotation] == c.namespace {
			e.Requests = append(e.Requests, c.plain(deletions.Items[i].Name))
		}
	}
	for _, prefix := range []string{"velero/backups/", "velero/restores/", c.namespace + "/backups/", c.namespace + "/restores/"} {
		objects, err := c.stack.Objects(prefix)
		require.NoError(c.t, err)
		for _, object := range objects {
			if strings.Contains(object.Key, c.namespace) {
				e.Files = append(e.Files, c.plain(object.Key))
			}
		}
	}
	slices.Sort(e.Files)
	e.Writes = c.writes()
	c.insteadIfTakenUpTwice() // meanwhile
	return e
}

// requireSame: the same object, Velero objects, files and writes have come of it as when nothing happens.
func (c *testCase) requireSame(want, got effects) {
	c.t.Helper()
	writes := got.Writes
	got.Writes = want.Writes
	require.Equal(c.t, want, got)
	c.attempts.RequireWrites(c.t, want.Writes, writes)
}

// ofAnyBuild leaves out what builds may write otherwise.
func (e effects) ofAnyBuild() effects {
	for _, text := range []*string{&e.Object, &e.Location, &e.Restore, &e.Restored.Results} {
		*text = outage.OfAnyBuild(*text)
	}
	e.Backups, e.Restored.Restores = outage.OfAnyBuilds(e.Backups), outage.OfAnyBuilds(e.Restored.Restores)
	return e
}

func (c *testCase) object() string {
	if c.nab == nil {
		return ""
	}
	nab, err := c.read()
	require.NoError(c.t, err)
	if nab == nil {
		return ""
	}
	nab.Status.QueueInfo = nil // the watcher's estimate
	if mirror := nab.Status.VeleroBackup; mirror != nil && mirror.Status != nil {
		mirror.Status.QueuePosition = 0
	}
	if drill := nab.Status.LastDrill; drill != nil {
		drill.RestoreSeconds, drill.ReadySeconds = 0, 0
	}
	slices.SortFunc(nab.Status.Conditions, func(a, b metav1.Condition) int { return strings.Compare(a.Type, b.Type) })
	return c.plain(asJSON(map[string]any{"spec": nab.Spec, "finalizers": nab.Finalizers, "status": nab.Status}))
}

func (c *testCase) writes() []string {
	requests, err := c.stack.Audit()
	require.NoError(c.t, err)
	var writes []string
	for _, r := range env.Writes(requests) {
		about := r.Namespace == c.namespace || strings.HasPrefix(r.Name, c.namespace) ||
			(c.nadr != nil && r.Name == c.veleroDownloadName()) ||
			(c.drill != nil && (r.Name == c.drillName() || r.Namespace == c.drillName()))
		if (r.User != env.HoldfastWorker && r.User != env.HoldfastDrills) || !about || r.Resource == "events" || r.Subresource == "status" {
			continue
		}
		if c.location != nil && r.Verb == "patch" && r.Resource == "backups" {
			continue // what a synchronization notes: its time may come at any moment
		}
		writes = append(writes, c.plain(fmt.Sprintf("%s %s %s", r.Verb, r.Resource, r.Name)))
	}
	slices.Sort(writes)
	return writes
}

func asJSON(value any) string {
	data, err := json.MarshalIndent(value, "", " ")
	if err != nil {
		panic(err)
	}
	return string(data)
}
