package velero

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"holdfast.dev/holdfast/activities/fake"
	holdfastv1alpha1 "holdfast.dev/holdfast/k8s/api/holdfast/v1alpha1"
	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
	"holdfast.dev/holdfast/k8s/owner"
	"holdfast.dev/holdfast/starter/watch/caches"
	"holdfast.dev/holdfast/starter/watch/watchtest"
	"holdfast.dev/holdfast/workflows/contract"
)

// drilled returns a drill in a phase, and what was made for it.
func drilled(of string, phase holdfastv1alpha1.DrillPhase) (
	*holdfastv1alpha1.RestoreDrill, *metav1.PartialObjectMetadata, *velerov1.Restore,
) {
	drill := fake.Drill(of, name)
	drill.Status.Phase = phase
	place := caches.Namespaces.Object.DeepCopyObject().(*metav1.PartialObjectMetadata)
	place.ObjectMeta = owner.DrillMeta(fake.Cluster, drill, "")
	return drill, place, &velerov1.Restore{ObjectMeta: owner.DrillMeta(fake.Cluster, drill, fake.OADPNamespace)}
}

func TestADrillIsSignalledUntilNothingIsLeft(t *testing.T) {
	const start, gone = "start drill team/weekly uid-weekly", "deleted drill team/weekly uid-weekly"
	running, place, restore := drilled("weekly", holdfastv1alpha1.DrillRestoring)
	over, _, _ := drilled("weekly", holdfastv1alpha1.DrillEnded)
	made := &corev1.Namespace{ObjectMeta: place.ObjectMeta}
	foreign := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: place.Name}}
	for title, test := range map[string]struct {
		there []client.Object
		want  []string
	}{
		"one that runs":                         {[]client.Object{running}, []string{start}},
		"one that has ended":                    {[]client.Object{over}, nil},
		"one that has ended, with a Restore":    {[]client.Object{over, restore}, []string{start}},
		"one that is gone":                      {nil, []string{gone}},
		"one that is gone, with a Restore":      {[]client.Object{restore}, []string{start}},
		"one that is gone, with its namespace":  {[]client.Object{made}, []string{start}},
		"one that is gone, with another's name": {[]client.Object{foreign}, []string{gone}},
	} {
		t.Run(title, func(t *testing.T) {
			s := newStation(t, test.there...)
			_, err := newDrills(s.env).Reconcile(t.Context(), request("weekly"))
			require.NoError(t, err)
			assert.Equal(t, test.want, s.signals.Sent)
		})
	}
}

func TestWhichEventsConcernADrill(t *testing.T) {
	running, place, restore := drilled("weekly", holdfastv1alpha1.DrillRestoring)
	_, orphan, _ := drilled("orphan", "")
	over, left, _ := drilled("over", holdfastv1alpha1.DrillEnded)
	other := edited(place, func(n *metav1.PartialObjectMetadata) { n.ObjectMeta = metav1.ObjectMeta{Name: "shop"} })
	waiting := edited(running, func(d *holdfastv1alpha1.RestoreDrill) {
		d.Status.Conditions = []metav1.Condition{{
			Type: holdfastv1alpha1.ConditionQueued, Status: metav1.ConditionFalse, Reason: holdfastv1alpha1.ReasonWaitingForTurn,
		}}
	})
	checking := edited(running, func(d *holdfastv1alpha1.RestoreDrill) { d.Status.Phase = holdfastv1alpha1.DrillChecking })
	finished := edited(restore, func(r *velerov1.Restore) { r.Status.Phase = velerov1.RestorePhaseCompleted })
	progress := edited(restore, func(r *velerov1.Restore) { r.Status.Progress = &velerov1.RestoreProgress{ItemsRestored: 1} })
	goes := edited(place, func(n *metav1.PartialObjectMetadata) { n.DeletionTimestamp = &metav1.Time{Time: fake.PlanTime} })
	own := func(d *drills) events { return d.drillEvents() }
	restores := func(d *drills) events { return d.madeEvents(veleroRestores) }
	namespaces := func(d *drills) events { return d.madeEvents(caches.Namespaces) }
	for title, test := range map[string]struct {
		of            func(*drills) events
		before, after client.Object
		want          []added
	}{
		"it is deleted":                {own, running, nil, atOnce(request("weekly"))},
		"its own status":               {own, running, checking, nil},
		"it begins to wait for a turn": {own, running, waiting, atOnce(request("weekly"))},
		"its namespace is deleted":     {namespaces, place, nil, atOnce(request("weekly"))},
		"its namespace is going":       {namespaces, place, goes, atOnce(request("weekly"))},
		"Velero finishes":              {restores, restore, finished, atOnce(request("weekly"))},
		"Velero makes progress":        {restores, restore, progress, nil},
		"somebody deletes the Restore": {restores, restore, nil, atOnce(request("weekly"))},
	} {
		t.Run(title, func(t *testing.T) {
			s := newStation(t, running, over)
			assert.Equal(t, test.want, watchtest.Happens(t.Context(), test.of(newDrills(s.env)), test.before, test.after))
		})
	}
	for title, test := range map[string]struct {
		made client.Object
		want []added
	}{
		"its namespace is created":           {place, nil},
		"a namespace whose drill is gone":    {orphan, atOnce(request("orphan"))},
		"one whose drill has ended":          {left, atOnce(request("over"))},
		"a namespace that is not of a drill": {other, nil},
	} {
		t.Run(title, func(t *testing.T) {
			s, q := newStation(t, running, over), &recordingQueue{}
			newDrills(s.env).madeEvents(caches.Namespaces).Create(t.Context(), event.CreateEvent{Object: test.made}, q)
			assert.Equal(t, test.want, q.Added)
		})
	}
}

// A drill that is gone is found by what was made for it.
func TestWhatWasMadeForADrillIsFoundAgain(t *testing.T) {
	_, place, restore := drilled("gone", "")
	s := newStation(t, restore, &corev1.Namespace{ObjectMeta: place.ObjectMeta})
	found := map[contract.ObjectRef]int{}
	require.NoError(t, newDrills(s.env).orphans(t.Context(), func(ref contract.ObjectRef) { found[ref]++ }))
	assert.Equal(t, map[contract.ObjectRef]int{fake.Ref("gone"): 2}, found)
}

// The turn of a drill ends with its Velero Restore.
func TestTheTurnOfADrillEnds(t *testing.T) {
	drill, _, restore := drilled("weekly", holdfastv1alpha1.DrillRestoring)
	s := newStation(t, drill)
	d := newDrills(s.env)
	running := edited(restore, func(r *velerov1.Restore) { r.Status.Phase = velerov1.RestorePhaseInProgress })
	watchtest.Happens(t.Context(), d.madeEvents(veleroRestores), restore, running)
	assert.Empty(t, s.turns.Noted, "Velero is at it")
	watchtest.Happens(t.Context(), d.madeEvents(veleroRestores), running, edited(running, func(r *velerov1.Restore) {
		r.Status.Phase = velerov1.RestorePhaseCompleted
	}))
	assert.Equal(t, []string{"not needed restores team/weekly"}, s.turns.Noted)
}

// judged is a drill of a backup that has its verdict.
func judged(of string, minute int, verified metav1.ConditionStatus) *holdfastv1alpha1.RestoreDrill {
	drill := fake.Drill(of, name)
	at := metav1.NewTime(time.Date(2026, 11, 25, 2, minute, 0, 0, time.UTC))
	drill.Status = holdfastv1alpha1.RestoreDrillStatus{
		Backup: name, BackupUID: "uid-" + name, Concluded: &at, Phase: holdfastv1alpha1.DrillCleaningUp,
		Conditions: []metav1.Condition{{Type: holdfastv1alpha1.ConditionVerified, Status: verified, Message: "long"}},
	}
	return drill
}

// A backup without drills, or with one that it shows, is settled.
func TestABackupIsSignalledOnceItsDrillHasAVerdict(t *testing.T) {
	shown := func(minute int) *oadpv1alpha1.BackupDrill {
		return &oadpv1alpha1.BackupDrill{Name: "shown", Concluded: *judged("shown", minute, "").Status.Concluded}
	}
	other := judged("weekly", 5, metav1.ConditionTrue)
	other.Status.BackupUID = "uid-before"
	running, _, _ := drilled("weekly", holdfastv1alpha1.DrillChecking)
	for title, test := range map[string]struct {
		shown  *oadpv1alpha1.BackupDrill
		drills []*holdfastv1alpha1.RestoreDrill
		want   string
	}{
		"none":                   {nil, nil, ""},
		"one that runs":          {nil, []*holdfastv1alpha1.RestoreDrill{running}, ""},
		"one that passed":        {nil, []*holdfastv1alpha1.RestoreDrill{judged("weekly", 5, metav1.ConditionTrue)}, "weekly"},
		"one that failed":        {shown(4), []*holdfastv1alpha1.RestoreDrill{judged("weekly", 5, metav1.ConditionFalse)}, "weekly"},
		"one that was not made":  {nil, []*holdfastv1alpha1.RestoreDrill{judged("weekly", 5, metav1.ConditionUnknown)}, ""},
		"one that it shows":      {shown(5), []*holdfastv1alpha1.RestoreDrill{judged("shown", 5, metav1.ConditionTrue)}, ""},
		"an older one is left":   {shown(6), []*holdfastv1alpha1.RestoreDrill{judged("weekly", 5, metav1.ConditionTrue)}, ""},
		"of one before it":       {nil, []*holdfastv1alpha1.RestoreDrill{other}, ""},
		"the newest of several":  {shown(4), []*holdfastv1alpha1.RestoreDrill{judged("a", 7, metav1.ConditionTrue), judged("b", 6, metav1.ConditionTrue)}, "a"},
		"two of the same second": {nil, []*holdfastv1alpha1.RestoreDrill{judged("a", 7, metav1.ConditionTrue), judged("b", 7, metav1.ConditionFalse)}, "b"},
	} {
		t.Run(title, func(t *testing.T) {
			nab, made := tracked(name, "Completed")
			nab.Status.LastDrill = test.shown
			there := []client.Object{inCache(t, nab), inCache(t, made)}
			for _, drill := range test.drills {
				there = append(there, inCache(t, drill))
			}
			s := newStation(t, there...)
			_, err := s.backups.Reconcile(t.Context(), request(name))
			require.NoError(t, err)
			if test.want == "" {
				assert.Empty(t, s.signals.Sent)
				return
			}
			assert.Equal(t, []string{start}, s.signals.Sent)
			assert.Equal(t, test.want, s.signals.Drill)
		})
	}
}

func TestWhichEventsOfADrillConcernItsBackup(t *testing.T) {
	nab, _ := tracked(name, "Completed")
	s := newStation(t, nab)
	running, _, _ := drilled("weekly", holdfastv1alpha1.DrillChecking)
	running.Status.Backup = name
	done := judged("weekly", 5, metav1.ConditionTrue)
	for title, test := range map[string]struct {
		before, after client.Object
		want          []added
	}{
		"it gets its verdict":       {running, done, atOnce(request(name))},
		"the watcher was restarted": {nil, done, atOnce(request(name))},
		"it could not be made":      {running, judged("weekly", 5, metav1.ConditionUnknown), nil},
		"it ends after that":        {done, edited(done, func(d *holdfastv1alpha1.RestoreDrill) { d.Status.Phase = "Ended" }), nil},
		"it is deleted":             {done, nil, nil},
		"another one has its name":  {done, edited(done, func(d *holdfastv1alpha1.RestoreDrill) { d.UID = "uid-another" }), atOnce(request(name))},
		"its backup is gone":        {running, edited(done, func(d *holdfastv1alpha1.RestoreDrill) { d.Status.Backup = "gone" }), nil},
	} {
		assert.Equal(t, test.want, watchtest.Happens(t.Context(), s.backups.drillEvents(), test.before, test.after), title)
	}
}
