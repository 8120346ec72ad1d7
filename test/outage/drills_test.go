package outage_test

import (
	"context"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	holdfastv1alpha1 "holdfast.dev/holdfast/k8s/api/holdfast/v1alpha1"
	"holdfast.dev/holdfast/k8s/owner"
	"holdfast.dev/holdfast/test/env"
)

// What is backed up here does not run: test/drills has a kubelet stand-in, and the Job of a tenant.
var drillScenarios = []scenario{{
	name:   "a drill",
	drills: true,
	before: backedUpForDrill,
	act:    (*testCase).beginDrill,
	want:   "Ended",
	done:   func(c *testCase) bool { return c.drillEnded() && c.drillShown() },
	check: func(c *testCase, e effects) {
		assert.Contains(c.t, e.Drill, `"reason": "Verified"`)
		assert.Contains(c.t, e.Object, `"message": "RestoreDrill weekly, TIME: `, "the backup has the verdict")
		assert.Empty(c.t, e.OfDrill, "nothing is left")
		assert.Equal(c.t, 1, occurrencesOf(e.Writes, "create restores DRILL"))
		assert.Equal(c.t, 1, occurrencesOf(e.Writes, "create namespaces DRILL"))
		assert.Equal(c.t, 1, occurrencesOf(e.Writes, "delete namespaces DRILL"))
	},
	sample: []string{
		"drill-worker after regular prepare-drill-namespace",
		"worker after local start-drill-restore",
		"watcher before regular check-drill",
		"temporal after local conclude-drill",
	},
	newer: true,
}, {
	name:   "a drill that is deleted",
	drills: true,
	before: backedUpForDrill,
	act: func(c *testCase) {
		c.beginDrill()
		c.awaitFor(patience, "begun", func() bool {
			now, err := c.readDrill()
			return err == nil && now != nil && now.Status.Started != nil
		})
		require.NoError(c.t, client.IgnoreNotFound(c.admin.Delete(c.t.Context(), c.drill.DeepCopy())))
	},
	want: "nothing left",
	done: func(c *testCase) bool {
		now, err := c.readDrill()
		return err == nil && now == nil && len(c.ofDrill()) == 0
	},
	check: func(c *testCase, e effects) {
		assert.Equal(c.t, 1, occurrencesOf(e.Writes, "create restores DRILL"))
		assert.Equal(c.t, 1, occurrencesOf(e.Writes, "delete namespaces DRILL"))
	},
	inLong: true,
	newer:  true,
}, {
	name:   "create while drills are on",
	drills: true,
	before: backedUp, // the key of all digests is made with the first backup
	act:    func(c *testCase) { c.backUpAs("later") },
	want:   "Completed",
	done:   (*testCase).completed, // and its workflow has ended
	check: func(c *testCase, e effects) {
		assert.Equal(c.t, 1, occurrencesOf(e.Writes, "create configmaps NAMESPACE-later-UUID-digests"))
		assert.Equal(c.t, 1, occurrencesOf(e.Writes, "patch backups NAMESPACE-later-UUID"))
	},
	sample: []string{"worker after regular record-digests"},
	newer:  true,
}}

// allowDrills has the administrator's policy allow drills until the test ends. Earlier builds do not know it: rollouts have another
// one.
func allowDrills(t *testing.T, r *rig) {
	t.Helper()
	setPolicy(t, r, "drills: {enabled: true}")
	t.Cleanup(func() { setPolicy(t, r, "{}") })
}

// backedUpForDrill brings the case to where there is a backup, and a worker makes the namespaces of drills.
func backedUpForDrill(c *testCase) {
	require.NoError(c.t, c.StartDrillWorker(c.t.Context()))
	backedUp(c)
}

// beginDrill creates the case's RestoreDrill.
func (c *testCase) beginDrill() {
	c.t.Helper()
	c.drill = &holdfastv1alpha1.RestoreDrill{
		ObjectMeta: metav1.ObjectMeta{Namespace: c.namespace, Name: "weekly"},
		Spec:       holdfastv1alpha1.RestoreDrillSpec{BackupName: c.nab.Name},
	}
	require.NoError(c.t, c.admin.Create(c.t.Context(), c.drill))
}

// drillName is the name of what is made for the case's drill; empty if it has none.
func (c *testCase) drillName() string {
	if c.drill == nil {
		return ""
	}
	return owner.DrillName(c.namespace, c.drill.UID)
}

// readDrill returns the RestoreDrill, nil if it is gone.
func (c *testCase) readDrill() (*holdfastv1alpha1.RestoreDrill, error) {
	drill := &holdfastv1alpha1.RestoreDrill{}
	err := c.admin.Get(context.Background(), client.ObjectKeyFromObject(c.drill), drill)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	return drill, err
}

func (c *testCase) drillEnded() bool {
	now, err := c.readDrill()
	return err == nil && now != nil && now.Status.Phase == holdfastv1alpha1.DrillEnded
}

// drillShown reports whether the backup has the verdict of the drill.
func (c *testCase) drillShown() bool {
	nab, err := c.read()
	return err == nil && nab != nil && nab.Status.LastDrill != nil && nab.Status.LastDrill.Name == c.drill.Name
}

// anySeconds is how long a restore has taken, in the message of a verdict.
var anySeconds = regexp.MustCompile(`restored in (\d+ seconds?|less than a second)`)

// drillObject is the status of the drill, without what it has measured of time; empty if there is none.
func (c *testCase) drillObject() string {
	if c.drill == nil {
		return ""
	}
	now, err := c.readDrill()
	require.NoError(c.t, err)
	if now == nil {
		return ""
	}
	if measured := now.Status.Measured; measured != nil {
		measured.RestoreSeconds, measured.ReadySeconds = 0, 0
	}
	return c.plain(asJSON(now.Status))
}

// ofDrill is what exists that was made for the drill.
func (c *testCase) ofDrill() (left []string) {
	if c.drill == nil {
		return nil
	}
	for _, made := range []client.Object{
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: c.drillName()}},
		&velerov1.Restore{ObjectMeta: metav1.ObjectMeta{Namespace: env.OADPNamespace, Name: c.drillName()}},
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: env.OADPNamespace, Name: c.drillName()}},
	} {
		if err := c.admin.Get(context.Background(), client.ObjectKeyFromObject(made), made); !apierrors.IsNotFound(err) {
			left = append(left, strings.TrimSpace(fmt.Sprintf("%T DRILL %v", made, err)))
		}
	}
	return left
}
