package outage_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
	"holdfast.dev/holdfast/k8s/owner"
	"holdfast.dev/holdfast/k8s/process/failpoint"
	"holdfast.dev/holdfast/k8s/velero"
	"holdfast.dev/holdfast/test/env"
	"holdfast.dev/holdfast/test/outage"
	"holdfast.dev/holdfast/workflows/contract"
	"holdfast.dev/holdfast/workflows/workflowtest/sample"
)

// settled is how soon after an outage, and after Velero's own end, a restore shows how it ended.
const settled = 15 * time.Second

// restorePoints are the phase changes of a restore: the step that is about to be taken when an outage begins.
var restorePoints = map[string]failpoint.Point{
	"created":          {Step: contract.StartRestore.Name, Form: failpoint.Local},
	"Velero's phase":   {Step: contract.RefreshRestore.Name, Form: failpoint.Local}, // the second time
	"planned":          {Step: contract.PlanFinalization.Name, Form: failpoint.Local},
	"Finalizing":       {Step: contract.RecordFinalization.Name, Form: failpoint.Local, Of: "volumes"},
	"volumes":          {Step: contract.RunFinalizationTask.Name, Form: failpoint.Regular, Of: "volumes"},
	"cleanup":          {Step: contract.RunFinalizationTask.Name, Form: failpoint.Regular, Of: "cleanup"},
	"validation":       {Step: contract.RunFinalizationTask.Name, Form: failpoint.Regular, Of: "validation"},
	"results":          {Step: contract.PublishFinalization.Name, Form: failpoint.Regular},
	"finally recorded": {Step: contract.RecordFinalization.Name, Form: failpoint.Local, Of: failpoint.TheEnd},
}

type restoreOutage struct {
	component, how string
	at             string // of restorePoints
	lasting        time.Duration
}

// disturbsVelero: Velero works on the restore meanwhile, and may fail it. Then that is what has to be told.
func (o restoreOutage) disturbsVelero() bool {
	return o.at == "Velero's phase" && o.component != env.Temporal
}

// restoreOutages: while Velero works on the restore no outage is longer than what it tries its patches for; what it loses
// after that no one gets back.
func restoreOutages() []restoreOutage {
	const half, minute, five = 30 * time.Second, time.Minute, 5 * time.Minute
	return []restoreOutage{
		{env.KubeAPIServer, "stopped", "Finalizing", half},
		{env.Etcd, "paused", "results", half},
		{env.KubeAPIServer, "paused", "created", half},
		{env.KubeAPIServer, "paused", "Velero's phase", half},
		{env.KubeAPIServer, "paused", "planned", half},
		{env.KubeAPIServer, "stopped", "volumes", half},
		{env.KubeAPIServer, "paused", "cleanup", half},
		{env.KubeAPIServer, "paused", "validation", half},
		{env.KubeAPIServer, "stopped", "results", half},
		{env.KubeAPIServer, "stopped", "finally recorded", half},
		{env.Etcd, "paused", "created", half},
		{env.Temporal, "paused", "created", half},
		{env.Temporal, "stopped", "Velero's phase", half},
		{env.Temporal, "stopped", "results", half},
		{env.Temporal, "stopped without its database", "validation", half},
		{env.KubeAPIServer, "stopped", "created", minute},
		{env.KubeAPIServer, "paused", "volumes", minute},
		{env.KubeAPIServer, "stopped", "finally recorded", minute},
		{env.Temporal, "stopped", "planned", minute},
		{env.KubeAPIServer, "stopped", "planned", five},
		{env.KubeAPIServer, "paused", "finally recorded", five},
	}
}

// An outage at a phase change of a restore: soon after its end, and after Velero's, the restore shows how it ended, and the same
// comes of it as when nothing happens.
func TestOutagesDuringARestore(t *testing.T) {
	sample.InLong(t, "TestOutagesAtAPoint")
	r := theRig(t)
	s := scenarioOf(t, "restore with warnings")
	want := undisturbed(t, r, s).left
	for _, o := range restoreOutages() {
		t.Run(fmt.Sprintf("%s %s %s, %s", o.component, o.how, o.lasting, o.at), func(t *testing.T) {
			withCase(t, r, func(c *testCase) { c.endsAfter(s, o, want) })
		})
	}
}

func (c *testCase) endsAfter(s scenario, o restoreOutage, want effects) {
	c.t.Helper()
	moment := outage.Moment{Point: restorePoints[o.at], Occurrence: 1}
	if o.at == "Velero's phase" {
		moment.Occurrence = 2
	}
	c.runInto(s, moment, o.component, o.how, o.lasting)
	back := time.Now()
	phase := c.awaitVeleroEnd()
	ended := time.Now()
	c.await(s.want, func() bool { return c.tells(phase) })
	c.requireSettled(time.Since(latest(back, ended)), fmt.Sprintf("the final status, after the outage of %s and Velero's end", o.lasting))
	if o.disturbsVelero() {
		say(c.t, "Velero itself has ended the restore as %s", phase)
	} else {
		c.requireSame(want, c.effects())
	}
}

// requireSettled: that took no longer than it may. On a busy machine that proves nothing.
func (c *testCase) requireSettled(took time.Duration, what string) {
	c.t.Helper()
	say(c.t, "%s: %s", took.Round(time.Second/10), what)
	if sample.Whole() {
		assert.Less(c.t, took, settled, what)
	}
}

func latest(one, other time.Time) time.Time {
	if one.After(other) {
		return one
	}
	return other
}

// awaitVeleroEnd waits until Velero has ended the restore, and returns how.
func (c *testCase) awaitVeleroEnd() velerov1.RestorePhase {
	c.t.Helper()
	var phase velerov1.RestorePhase
	c.poll(patience, func() error {
		var list velerov1.RestoreList
		if err := c.admin.List(context.Background(), &list, client.InNamespace(env.OADPNamespace)); err != nil {
			return err
		}
		for i := range list.Items {
			if key, named := owner.Restore.Hint(&list.Items[i]); named && key.Namespace == c.namespace {
				phase = list.Items[i].Status.Phase
			}
		}
		if !velero.Finished(phase) {
			return fmt.Errorf("the Velero Restore is %q", phase)
		}
		return nil
	})
	return phase
}

// tells reports whether the restore's status repeats how Velero has ended it, and how the finalization ended that follows.
func (c *testCase) tells(phase velerov1.RestorePhase) bool {
	found, err := c.readRestore()
	if err != nil || found == nil || found.Status.VeleroRestore == nil || found.Status.VeleroRestore.Status == nil ||
		found.Status.VeleroRestore.Status.Phase != phase {
		return false
	}
	if !velero.Usable(phase) {
		return found.Status.Finalization == nil
	}
	failed := found.Status.Finalization != nil &&
		found.Status.Finalization.Phase == oadpv1alpha1.FinalizationPhasePartiallyFailed
	return c.finalized() && (failed || phase == velerov1.RestorePhaseCompleted)
}
