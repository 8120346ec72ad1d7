package finalization

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"holdfast.dev/holdfast/activities"
	"holdfast.dev/holdfast/k8s/objectstore"
)

func restoredMeta(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: team, Name: name, Generation: 2, Labels: labelled(restoreName)}
}

func deployment(replicas, available int32, observed int64) *appsv1.Deployment {
	return &appsv1.Deployment{
		ObjectMeta: restoredMeta("web"), Spec: appsv1.DeploymentSpec{Replicas: &replicas},
		Status: appsv1.DeploymentStatus{AvailableReplicas: available, ObservedGeneration: observed},
	}
}

func pod(phase corev1.PodPhase, ready corev1.ConditionStatus) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: restoredMeta("job"), Status: corev1.PodStatus{
		Phase: phase, Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: ready}},
	}}
}

// lists puts what Velero noted of the backup and the restore.
func (s *scene) lists(backup, restored objectstore.ResourceList) {
	s.put("backups/"+backupName+"/"+backupName+"-resource-list.json.gz", backup)
	s.put("restores/"+restoreName+"/restore-"+restoreName+"-resource-list.json.gz", restored)
}

func TestWhatIsNotReadyIsWaitedForAndThenReported(t *testing.T) {
	yes := true
	owned := pod(corev1.PodPending, corev1.ConditionFalse)
	owned.OwnerReferences = []metav1.OwnerReference{{Kind: "ReplicaSet", Name: "web-1", UID: "r", Controller: &yes}}
	strangers := deployment(1, 0, 2)
	strangers.Labels = labelled("another")
	elsewhere := deployment(1, 0, 2)
	elsewhere.Namespace = "crew"
	lost := claim("data", "pv")
	lost.Status.Phase = corev1.ClaimLost
	daemons := &appsv1.DaemonSet{
		ObjectMeta: restoredMeta("agent"),
		Status:     appsv1.DaemonSetStatus{DesiredNumberScheduled: 2, NumberReady: 1, ObservedGeneration: 2},
	}
	for title, test := range map[string]struct {
		object  client.Object
		warning string
		err     string
	}{
		"a Deployment that is ready":         {object: deployment(2, 2, 2)},
		"a Deployment of nothing":            {object: deployment(0, 0, 2)},
		"a Deployment that lacks replicas":   {object: deployment(3, 1, 2), warning: "Deployment web is not ready: 1 of 3 replicas are"},
		"a Deployment that was not observed": {object: deployment(1, 1, 1), warning: "Deployment web has not been observed by its controller"},
		"somebody else's Deployment":         {object: strangers},
		"another namespace's Deployment":     {object: elsewhere},
		"a StatefulSet that is not ready":    {object: &appsv1.StatefulSet{ObjectMeta: restoredMeta("db"), Status: appsv1.StatefulSetStatus{ObservedGeneration: 2}}, warning: "StatefulSet db is not ready: 0 of 1 replicas are"},
		"a DaemonSet that is not ready":      {object: daemons, warning: "DaemonSet agent is not ready: 1 of 2 replicas are"},
		"a Pod that is ready":                {object: pod(corev1.PodRunning, corev1.ConditionTrue)},
		"a Pod that is done":                 {object: pod(corev1.PodSucceeded, corev1.ConditionFalse)},
		"a Pod that is not ready":            {object: pod(corev1.PodRunning, corev1.ConditionFalse), warning: "Pod job is not ready"},
		"a Pod that has failed":              {object: pod(corev1.PodFailed, corev1.ConditionFalse), err: "Pod job has failed"},
		"a Pod that something recreates":     {object: owned},
		"a claim that is bound":              {object: claim("data", "pv")},
		"a claim that is not bound":          {object: claim("data", ""), warning: "PersistentVolumeClaim data is not bound"},
		"a claim that has lost its volume":   {object: lost, err: "PersistentVolumeClaim data has lost its PersistentVolume"},
	} {
		t.Run(title, func(t *testing.T) {
			s := newScene(t, test.object.DeepCopyObject().(client.Object))
			s.lists(nil, nil)
			_, err := s.run(validationTask{})
			var waits *activities.NotYetError
			assert.Equal(t, test.warning != "", errors.As(err, &waits), "waits while there is time: %v", err)

			s.Expired = true
			found, err := s.run(validationTask{})
			require.NoError(t, err)
			assert.Equal(t, one(test.warning), found.Warnings.Namespace)
			assert.Equal(t, one(test.err), found.Errors.Namespace)
			assert.Empty(t, s.writes)
		})
	}
}

func one(text string) []string {
	if text == "" {
		return nil
	}
	return []string{text}
}

func TestWhoWaitsIsNamed(t *testing.T) {
	var objects []client.Object
	for i := range 5 {
		made := deployment(1, 0, 2)
		made.Name = fmt.Sprintf("web-%d", i)
		objects = append(objects, made)
	}
	_, err := newScene(t, objects...).run(validationTask{})
	require.EqualError(t, err, "waits for Deployment web-0, Deployment web-1, Deployment web-2 and 2 more")
}

func TestWhatIsMissingIsReported(t *testing.T) {
	s := newScene(t)
	s.lists(
		objectstore.ResourceList{"v1/ConfigMap": {"team/a", "team/b", "team/there", "crew/c"}, "apps/v1/Deployment": {"team/web"}},
		objectstore.ResourceList{"v1/ConfigMap": {"team/a(created)", "team/there(failed)"}, "apps/v1/Deployment": {"team/web(failed)"}})
	s.put("restores/"+restoreName+"/restore-"+restoreName+"-results.gz", objectstore.Results{objectstore.WarningsKey: {
		Namespaces: map[string][]string{team: {"could not restore, ConfigMap:there already exists. Warning: the in-cluster version is different"}},
	}})
	found, err := s.run(validationTask{})
	require.NoError(t, err)
	assert.Equal(t, []string{
		"Deployment web is in the backup and was not restored", "ConfigMap b is in the backup and was not restored",
	}, found.Warnings.Namespace)
	assert.Zero(t, found.Errors.Count())

	s.Restore.Spec.LabelSelector = &metav1.LabelSelector{}
	found, err = s.run(validationTask{})
	require.NoError(t, err)
	assert.Zero(t, found.Warnings.Count(), "what a selector leaves out is not missing")
}

func TestAStoreThatCannotBeRead(t *testing.T) {
	unusable := func(s *scene) {
		file := filepath.Join(s.folder, "backups", backupName, backupName+"-resource-list.json.gz")
		require.NoError(s.t, os.MkdirAll(filepath.Dir(file), 0o700))
		require.NoError(s.t, os.WriteFile(file, []byte("x"), 0o600))
	}
	away := func(s *scene) {
		s.OpenStore = func(context.Context) (*objectstore.Store, error) {
			return nil, &objectstore.Error{Action: "read x", Reason: "the object store did not answer in time"}
		}
	}
	for title, test := range map[string]struct {
		spoil               func(*scene)
		wantWarn, wantError bool // at once, and when the time is over
		retried             bool
	}{
		"the file is not there":           {spoil: func(*scene) {}, wantWarn: true},
		"the file is not what it must be": {spoil: unusable, wantWarn: true},
		"the store does not answer":       {spoil: away, wantError: true, retried: true},
	} {
		t.Run(title, func(t *testing.T) {
			s := newScene(t)
			test.spoil(s)
			found, err := s.run(validationTask{})
			assert.Equal(t, test.retried, err != nil)
			assert.Equal(t, test.wantWarn, found.Warnings.Count() == 1)
			s.Expired = true
			found, err = s.run(validationTask{})
			require.NoError(t, err)
			assert.Equal(t, test.wantWarn, found.Warnings.Count() == 1)
			assert.Equal(t, test.wantError, found.Errors.Count() == 1)
		})
	}
}

func TestATaskDoesNotSayMoreThanSomebodyReads(t *testing.T) {
	var lines []string
	for i := range maxLines + 50 {
		add(&lines, "line %d", i)
	}
	assert.Len(t, lines, maxLines)
	assert.Equal(t, "line 0", lines[0])
	assert.Equal(t, "and 51 more", lines[maxLines-1])
}
