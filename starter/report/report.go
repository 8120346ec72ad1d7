package report

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"holdfast.dev/holdfast/activities/plan"
	holdfastv1alpha1 "holdfast.dev/holdfast/k8s/api/holdfast/v1alpha1"
	"holdfast.dev/holdfast/k8s/lifecycle"
	"holdfast.dev/holdfast/starter/velero"
)

// Protection is how a namespace is protected.
type Protection string

// The protections, the worst first.
const (
	// Unprotected: it has something to protect, and no good backup began in the time of the report.
	Unprotected Protection = "unprotected"
	// Partly: a good backup began in the time of the report, and leaves something out.
	Partly Protection = "partly"
	// Missed: a plan of it misses its objective.
	Missed Protection = "objective missed"
	// BackedUp: a good backup began in the time of the report. No plan has an objective.
	BackedUp Protection = "backed up"
	// Met: it has plans with an objective, and all meet it.
	Met Protection = "objective met"
	// Empty: it has nothing to protect.
	Empty Protection = "empty"
)

// Protections are all protections, the worst first.
var Protections = []Protection{Unprotected, Partly, Missed, BackedUp, Met, Empty}

// Report is what `holdfast report` shows. All times are UTC.
type Report struct {
	Cluster string    `json:"cluster"`
	From    time.Time `json:"from"`
	Until   time.Time `json:"until"`
	// Summary is the number of namespaces by protection.
	Summary    map[Protection]int `json:"summary"`
	Namespaces []Namespace        `json:"namespaces"`
	// QuotaProblem says why no quotas are shown, if the policy cannot be used.
	QuotaProblem string `json:"quotaProblem,omitempty"`
	// Calendar are the days of the report, oldest first.
	Calendar []Day `json:"calendar"`
	// Missing are the objectives that are missed now, the longest first.
	Missing []MissedObjective `json:"missedObjectives"`
	Stored  Stored            `json:"stored"`
	// Approvals are decisions about storage locations, newest first.
	Approvals []Approval `json:"approvals"`
	// Restores are those that were created in the time of the report, newest first.
	Restores []Restore `json:"restores"`
}

// Namespace is one row of the report.
type Namespace struct {
	velero.Holding
	Protection Protection `json:"protection"`
	Backups    int        `json:"backups"`
	// Verified is the newest backup that a drill has verified; nil if none has.
	Verified *holdfastv1alpha1.VerifiedRun `json:"verified,omitempty"`
	// Quota is what it uses of its limits; nil if it has none.
	Quota *velero.Quota `json:"quota,omitempty"`
}

// Omissions is what the newest backup leaves out of a namespace that is protected partly, for people; else empty.
func (n Namespace) Omissions() string {
	if n.Protection != Partly {
		return ""
	}
	return "left out: " + strings.Join(n.LeftOut, "; ")
}

// Day is what became of the runs of all plans that were due on one day. A day on which nothing was due has zeros.
type Day struct {
	Date    string `json:"date"`
	Good    int64  `json:"good"`
	Failed  int64  `json:"failed"`
	Missed  int64  `json:"missed"`
	Skipped int64  `json:"skipped"`
}

// Stored is what the backups hold.
type Stored struct {
	Backups int `json:"backups"`
	// VolumeBytes are what the backups' volumes hold, before the uploader deduplicates.
	VolumeBytes int64 `json:"volumeBytes"`
}

// Approval is a decision about a tenant's storage location.
type Approval struct {
	Namespace string    `json:"namespace"`
	Location  string    `json:"location"`
	Decision  string    `json:"decision"`
	By        string    `json:"by"`
	Reason    string    `json:"reason,omitempty"`
	At        time.Time `json:"at"`
}

// Restore is a restore by a tenant.
type Restore struct {
	Namespace string    `json:"namespace"`
	Name      string    `json:"name"`
	Backup    string    `json:"backup"`
	Result    string    `json:"result"`
	At        time.Time `json:"at"`
}

// Make makes the report of a time that ends now.
func Make(o Objects, since time.Duration, now time.Time) *Report {
	now = now.UTC().Truncate(time.Second)
	r := &Report{
		Cluster: o.Cluster, From: now.Add(-since), Until: now, Summary: map[Protection]int{},
		Namespaces: []Namespace{}, QuotaProblem: o.QuotaProblem,
		Missing: []MissedObjective{}, Approvals: []Approval{}, Restores: []Restore{},
	}
	r.addNamespaces(o)
	r.addCalendar(o)
	r.addMissing(o)
	r.addStored(o)
	r.addApprovals(o)
	r.addRestores(o)
	return r
}

func (r *Report) addNamespaces(o Objects) {
	backups, objectives := map[string]int{}, objectivesOf(o)
	for i := range o.Backups {
		backups[o.Backups[i].Namespace]++
	}
	quotas := map[string]*velero.Quota{}
	for i := range o.Quotas {
		quotas[o.Quotas[i].Namespace] = &o.Quotas[i]
	}
	newest := verified(o)
	for _, holding := range o.Holdings {
		row := Namespace{
			Holding: holding, Backups: backups[holding.Namespace], Quota: quotas[holding.Namespace],
			Protection: r.protection(holding, objectives[holding.Namespace]), Verified: newest[holding.Namespace],
		}
		r.Summary[row.Protection]++
		r.Namespaces = append(r.Namespaces, row)
	}
	slices.SortStableFunc(r.Namespaces, func(a, b Namespace) int {
		return cmp.Or(cmp.Compare(slices.Index(Protections, a.Protection), slices.Index(Protections, b.Protection)),
			cmp.Compare(a.Namespace, b.Namespace))
	})
}

// addCalendar sums up the days of all plans. A plan keeps 31.
func (r *Report) addCalendar(o Objects) {
	days := map[string]*Day{}
	for at := r.From; !at.After(r.Until); at = at.Add(24 * time.Hour) {
		r.Calendar = append(r.Calendar, Day{Date: at.Format(time.DateOnly)})
	}
	if last := r.Until.Format(time.DateOnly); r.Calendar[len(r.Calendar)-1].Date != last {
		r.Calendar = append(r.Calendar, Day{Date: last})
	}
	for i := range r.Calendar {
		days[r.Calendar[i].Date] = &r.Calendar[i]
	}
	for i := range o.Plans {
		for _, day := range o.Plans[i].Status.Days {
			if sum := days[day.Date]; sum != nil {
				sum.Good, sum.Failed = sum.Good+day.Good, sum.Failed+day.Failed
				sum.Missed, sum.Skipped = sum.Missed+day.Missed, sum.Skipped+day.Skipped
			}
		}
	}
}

func (r *Report) addStored(o Objects) {
	for i := range o.Backups {
		made, gone := o.Backups[i].Status.VeleroBackup, plan.GoneSince(&o.Backups[i])
		if made != nil && made.Status != nil && gone.IsZero() {
			r.Stored.Backups++
		}
	}
	for i := range o.Volumes {
		r.Stored.VolumeBytes += o.Volumes[i].Status.Progress.TotalBytes
	}
}

func (r *Report) addApprovals(o Objects) {
	for i := range o.Approvals {
		status := o.Approvals[i].Status
		last, asked := status.LastDecision, status.VeleroBackupStorageLocationApprovalRequest
		if last == nil || asked == nil || last.DecidedAt.Time.Before(r.From) {
			continue
		}
		r.Approvals = append(r.Approvals, Approval{
			Namespace: asked.Namespace, Location: asked.Name, Decision: string(last.Decision), By: last.DecidedBy, Reason: last.Reason,
			At: last.DecidedAt.UTC(),
		})
	}
	slices.SortFunc(r.Approvals, func(a, b Approval) int { return cmp.Or(b.At.Compare(a.At), cmp.Compare(a.Location, b.Location)) })
}

func (r *Report) addRestores(o Objects) {
	for i := range o.Restores {
		nar := &o.Restores[i]
		if nar.CreationTimestamp.Time.Before(r.From) {
			continue
		}
		row := Restore{
			Namespace: nar.Namespace, Name: nar.Name, At: nar.CreationTimestamp.UTC(), Result: string(nar.Status.Phase),
		}
		if spec := nar.Spec.RestoreSpec; spec != nil {
			row.Backup = spec.BackupName
		}
		if made := nar.Status.VeleroRestore; made != nil && made.Status != nil {
			row.Result = string(made.Status.Phase)
		}
		if phase := lifecycle.FinalPhase(nar); phase != "" {
			row.Result = string(phase)
		}
		r.Restores = append(r.Restores, row)
	}
	slices.SortFunc(r.Restores, func(a, b Restore) int { return cmp.Or(b.At.Compare(a.At), cmp.Compare(a.Name, b.Name)) })
}
