package plan

import (
	"fmt"
	"slices"

	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	holdfastv1alpha1 "holdfast.dev/holdfast/k8s/api/holdfast/v1alpha1"
	"holdfast.dev/holdfast/workflows/plan/content"
	"holdfast.dev/holdfast/workflows/plan/retention"
)

// goodRuns are the plan's good backups that are stored, with what they hold.
func (o *Objects) goodRuns() []content.Run {
	shown := map[string]string{}
	for _, run := range o.Plan.Status.Recent {
		shown[run.Name] = run.Phase
	}
	var runs []content.Run
	for _, b := range o.made() {
		if b.state() != retention.Good || b.gone() || b.deleting() {
			continue
		}
		before, recent := shown[b.Object.Name]
		runs = append(runs, content.Run{
			RunContent: b.content(),
			Ended:      recent && endOf(before) != retention.Good,
			Declared:   b.Object.Labels[holdfastv1alpha1.LabelUsual] == holdfastv1alpha1.LabelUsualValue,
		})
	}
	return runs
}

// judgeContent judges what the good backups hold. Those of an earlier plan come back in any order: as long as one of them is
// stored, all are judged anew.
func (o *Objects) judgeContent() *holdfastv1alpha1.Content {
	before, stored := o.Plan.Status.Content, o.goodRuns()
	earlier := func(run content.Run) bool { return run.Time.Before(&o.Plan.CreationTimestamp) }
	if len(o.Plan.Status.Continues) > 0 && slices.ContainsFunc(stored, earlier) {
		before = nil
	}
	return content.Judge(before, stored)
}

// content is what Velero has counted of a backup, as its NonAdminBackup shows it.
func (b Backup) content() holdfastv1alpha1.RunContent {
	status := &b.Object.Status
	holds := holdfastv1alpha1.RunContent{Name: b.Object.Name, Time: metav1.NewTime(b.begin())}
	if uploads := status.DataMoverDataUploads; uploads != nil {
		holds.Volumes += int64(uploads.Completed)
	}
	if files := status.FileSystemPodVolumeBackups; files != nil {
		holds.Volumes += int64(files.Completed)
	}
	if made := status.VeleroBackup; made != nil && made.Status != nil {
		holds.Volumes += int64(made.Status.VolumeSnapshotsCompleted + made.Status.CSIVolumeSnapshotsCompleted)
		if progress := made.Status.Progress; progress != nil {
			holds.Items = new(int64(progress.ItemsBackedUp))
			holds.Empty = *holds.Items <= bare(made.Spec) && holds.Volumes == 0
		}
	}
	return holds
}

// bare is how many items Velero backs up of a namespace that nobody has put anything into: the Namespace, ServiceAccount default
// and ConfigMap kube-root-ca.crt; by labels the Namespace, which a backup by name always has (item_collector.go), and by kinds
// perhaps none.
func bare(spec *velerov1.BackupSpec) int64 {
	const all, byLabels = 3, 1
	if spec == nil {
		return 0
	}
	byKinds := func(included []string) bool { return len(included) > 0 && !slices.Contains(included, "*") }
	switch {
	case byKinds(spec.IncludedResources), byKinds(spec.IncludedNamespaceScopedResources):
		return 0
	case spec.LabelSelector != nil, len(spec.OrLabelSelectors) > 0:
		return byLabels
	}
	return all
}

// applyContent shows what the good backups hold.
func applyContent(o *Objects, j Judgement) {
	p := o.Plan
	if p.Status.Content = j.Content; j.Content == nil {
		meta.RemoveStatusCondition(&p.Status.Conditions, holdfastv1alpha1.ConditionContentUsual)
		return
	}
	verdict := content.Verdict(*j.Content.Newest, j.Content.Usual)
	status, message := metav1.ConditionFalse, ""
	switch verdict {
	case holdfastv1alpha1.ReasonUsual:
		status, message = metav1.ConditionTrue, "the newest good backup holds what the plan's backups usually hold"
	case holdfastv1alpha1.ReasonUnknown:
		status, message = metav1.ConditionUnknown, "Velero has not counted what the newest good backup holds"
	default:
		message = lessMessage(o, j.Content)
	}
	setCondition(p, holdfastv1alpha1.ConditionContentUsual, status, verdict, message)
}

// lessMessage says of a backup how much less it holds. It is another one for each backup that holds less than those before it:
// each has an Event.
func lessMessage(o *Objects, c *holdfastv1alpha1.Content) string {
	if len(c.Usual) == 0 {
		return "the newest good backup holds nothing but what every namespace has, and no stored one is known to hold more"
	}
	items, volumes := content.Least(c.Usual)
	message := fmt.Sprintf("NonAdminBackup %s holds %d items and %d volumes, those before it at least %d and %d", c.Newest.Name,
		*c.Newest.Items, c.Newest.Volumes, items, volumes)
	if o.Keep != nil {
		message += "; minGood keeps some of these"
	}
	return message + ". If that is intended, label it " + holdfastv1alpha1.LabelUsual + "=" + holdfastv1alpha1.LabelUsualValue
}

// news reports whether a condition says what is worth an Event: another reason or, of what backups hold, another backup that
// holds less. That the first backups hold what is usual is none.
func news(was, is *metav1.Condition) bool {
	switch {
	case is == nil, is.Status == metav1.ConditionUnknown:
		return false
	case is.Type != holdfastv1alpha1.ConditionContentUsual:
		return was == nil || was.Status != is.Status || was.Reason != is.Reason
	case is.Status == metav1.ConditionTrue:
		return was != nil && was.Status == metav1.ConditionFalse
	}
	return was == nil || was.Reason != is.Reason || was.Message != is.Message
}

// shownConditions are those whose changes have an Event.
var shownConditions = []string{
	holdfastv1alpha1.ConditionReady, holdfastv1alpha1.ConditionObjectiveMet, holdfastv1alpha1.ConditionContentUsual,
}
