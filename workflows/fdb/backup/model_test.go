package backup_test

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"holdfast.dev/holdfast/activities/fdb/gather"
	fdbv1alpha1 "holdfast.dev/holdfast/k8s/api/fdb/v1alpha1"
	"holdfast.dev/holdfast/k8s/fdb"
	"holdfast.dev/holdfast/workflows/contract"
	fdbbackup "holdfast.dev/holdfast/workflows/fdb/backup"
)

// modelTag is a tag of the model database.
type modelTag struct {
	contract.FDBTag
	ranges []string
	// foreign: neither this object nor a twin of it in another Kubernetes cluster started it.
	foreign bool
}

// model is a database, an object store, an object and a throttle, on which the workflow's passes run. Between any two steps everything
// else may happen that can happen, until the world is calm.
type model struct {
	*rapid.T
	calm   bool
	now    time.Time
	object *fdbv1alpha1.FoundationDBBackup
	memory contract.FDBMemory

	tags   map[string]*modelTag
	paused bool
	// data are the containers that have been written to.
	data map[string]bool
	// others is what the other backups of the cluster want of the agents: Running, Paused, or empty for none.
	others string
	// holds: the throttle has given the slot.
	holds bool

	starts map[string]int
	uids   int
	tried  int
	failed *fdbbackup.Attempt
}

var (
	errKilled     = errors.New("killed")
	modelAccounts = []fdb.Account{{Name: "lab", Host: "s3.local"}}
	modelTags     = []string{"default", "nightly"}
	modelRanges   = [][]fdbv1alpha1.KeyRange{nil, {{Start: "a", End: "b"}}}
	modelStates   = []fdbv1alpha1.BackupState{
		fdbv1alpha1.BackupStateRunning, fdbv1alpha1.BackupStatePaused, fdbv1alpha1.BackupStateStopped,
	}
)

func newModel(t *rapid.T, format string) *model {
	return &model{
		T: t, now: time.Date(2026, 8, 1, 12, 0, 0, 0, time.UTC), tags: map[string]*modelTag{}, data: map[string]bool{},
		starts: map[string]int{},
		object: &fdbv1alpha1.FoundationDBBackup{
			ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "lab", Generation: 1, Finalizers: []string{fdbv1alpha1.FinalizerStop}},
			Spec: fdbv1alpha1.FoundationDBBackupSpec{
				SnapshotPeriodSeconds: 100, Destination: fdbv1alpha1.BackupDestination{TimestampFormat: &format},
			},
		},
	}
}

func (m *model) objects() *gather.Objects {
	if !slices.Contains(m.object.Finalizers, fdbv1alpha1.FinalizerStop) && !m.object.DeletionTimestamp.IsZero() {
		return &gather.Objects{}
	}
	destination, err := fdb.Resolve(m.object, modelAccounts)
	if err != nil {
		m.Fatal(err)
	}
	return &gather.Objects{
		Object: m.object, Accounts: modelAccounts, Destination: destination,
		Cluster: &gather.Cluster{Name: "lab", ConnectionString: "lab:1@10.0.0.1:4500", Version: "7.3.48"},
	}
}

func (m *model) view() contract.FDBBackupView {
	view := m.objects().View()
	view.Agents = contract.FDBAgentsView{Exists: true, Ours: true, Current: true, RolledOut: true, Wanted: 3, Ready: 3}
	return view
}

// either draws a choice by its name; in a calm world it is always the first.
func (m *model) either(what string, names ...string) string {
	if m.calm {
		return names[0]
	}
	return rapid.SampledFrom(names).Draw(m.T, what)
}

// between is called between any two steps of a pass.
func (m *model) between() error {
	m.now = m.now.Add(10 * time.Millisecond)
	if m.calm {
		return nil
	}
	switch m.either("meanwhile", "nothing", "nothing", "nothing", "the world turns", "killed") {
	case "the world turns":
		m.turn()
	case "killed": // and Temporal's database lost with it: what is only in the memory of the workflow is gone
		if m.either("the throttle", "remembers", "forgets") == "forgets" {
			m.holds = false
		}
		m.memory, m.failed = contract.FDBMemory{}, nil
		return errKilled
	}
	return nil
}

// turn does something that the workflow does not do.
func (m *model) turn() {
	tag := m.tag(rapid.SampledFrom(modelTags).Draw(m.T, "tag"))
	switch m.either("turn", "time", "progress", "spec", "spec", "foreign start", "twin", "abort", "others", "agents", "delete") {
	case "time":
		m.now = m.now.Add(time.Duration(rapid.IntRange(1, 20000).Draw(m.T, "seconds")) * time.Second)
	case "progress":
		m.progress()
	case "spec":
		m.respecify()
	case "foreign start":
		if !tag.Running {
			m.begin(tag, "blobstore://other@s3.remote/theirs?bucket=theirs", nil, true)
		}
	case "twin":
		if m.objects().Object == nil {
			return
		}
		desired := m.objects().Desired()
		base, err := fdb.ParseURL(desired.URL)
		if err != nil {
			m.Fatal(err)
		}
		place, err := base.At(desired.TimestampFormat, m.now.Add(-time.Hour))
		if err != nil {
			m.Fatal(err)
		}
		if current := m.tag(desired.Tag); !current.Running && !m.data[placeOf(place.URL())] {
			m.begin(current, place.URL(), desired.KeyRanges, false)
		}
	case "abort": // by hand
		m.end(tag)
	case "others":
		m.others = rapid.SampledFrom([]string{"", "Running", "Paused"}).Draw(m.T, "others")
	case "agents":
		m.paused = !m.paused
	case "delete":
		if m.object.DeletionTimestamp.IsZero() && rapid.IntRange(0, 9).Draw(m.T, "really") == 0 {
			at := metav1.NewTime(m.now)
			m.object.DeletionTimestamp, m.object.Generation = &at, m.object.Generation+1
		}
	}
}

func (m *model) respecify() {
	spec := &m.object.Spec
	switch m.either("field", "state", "tag", "path", "ranges", "period", "parameters") {
	case "state":
		spec.BackupState = rapid.SampledFrom(modelStates).Draw(m.T, "state")
	case "tag":
		spec.Tag = rapid.SampledFrom(modelTags).Draw(m.T, "tag")
	case "path":
		spec.Destination.Path = rapid.SampledFrom([]string{"", "elsewhere"}).Draw(m.T, "path")
	case "ranges":
		spec.KeyRanges = rapid.SampledFrom(modelRanges).Draw(m.T, "ranges")
	case "period":
		spec.SnapshotPeriodSeconds = rapid.SampledFrom([]int64{100, 200}).Draw(m.T, "period")
	case "parameters":
		spec.URLParameters = rapid.SampledFrom([][]string{nil, {"sc=0"}}).Draw(m.T, "parameters")
	}
	m.object.Generation++
}

func (m *model) tag(name string) *modelTag {
	if m.tags[name] == nil {
		m.tags[name] = &modelTag{FDBTag: contract.FDBTag{Tag: name, State: fdb.StateNeverRan}}
	}
	return m.tags[name]
}

func (m *model) begin(tag *modelTag, url string, ranges []string, foreign bool) {
	m.uids++
	tag.FDBTag = contract.FDBTag{Tag: tag.Tag, UID: fmt.Sprint(m.uids), State: fdb.StateSubmitted, Running: true, URL: url}
	tag.ranges, tag.foreign = ranges, foreign
	m.data[placeOf(url)] = true
}

func (m *model) end(tag *modelTag) {
	if tag.Running {
		tag.State, tag.Running = fdb.StateAborted, false
	}
}

// progress lets the agents do some work.
func (m *model) progress() {
	if m.paused {
		return
	}
	for _, tag := range m.tags {
		switch {
		case !tag.Running:
		case tag.State == fdb.StateSubmitted:
			tag.State, tag.SnapshotPeriodSeconds = fdb.StateRunning, m.object.Spec.SnapshotPeriodSeconds
		case tag.State == fdb.StateRunning:
			tag.State, tag.Restorable = fdb.StateRunningDifferentially, true
		}
	}
}

// placeOf returns a URL without its parameters.
func placeOf(url string) string {
	d, err := fdb.ParseURL(url)
	if err != nil {
		return url
	}
	d.Parameters = nil
	return d.URL()
}

func (m *model) inspect() contract.FDBInspection {
	names := map[string]bool{m.objects().Desired().Tag: true}
	seen := contract.FDBInspection{AgentsPaused: m.paused}
	for _, entry := range m.object.Status.Backups {
		names[entry.Tag] = true
		if m.data[placeOf(entry.URL)] {
			seen.Containers = append(seen.Containers, contract.FDBContainer{
				URL: entry.URL, Oldest: &contract.FDBPoint{Version: 1}, Latest: &contract.FDBPoint{Version: 2},
			})
			continue
		}
		seen.Containers = append(seen.Containers, contract.FDBContainer{URL: entry.URL, Missing: true})
	}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		seen.Tags = append(seen.Tags, m.tag(name).FDBTag)
	}
	return seen
}
