package planspec

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/utils/ptr"

	holdfastv1alpha1 "holdfast.dev/holdfast/k8s/api/holdfast/v1alpha1"
	"holdfast.dev/holdfast/k8s/policy"
	"holdfast.dev/holdfast/workflows/plan/due"
	"holdfast.dev/holdfast/workflows/plan/retention"
)

// Context is what a spec is judged by besides itself.
type Context struct {
	// Rules are the policy in force.
	Rules policy.Own
	// Interval is the shortest time between two runs.
	Interval time.Duration
	// Older are the names of the plans of the namespace that are older and not default ones.
	Older []string
}

// IsDefault reports whether a plan is, as it stands, one that the administrator gives to namespaces. A mark on the object would
// not do: a tenant could write it.
func IsDefault(rules policy.Own, name string, spec *holdfastv1alpha1.BackupPlanSpec) bool {
	return slices.ContainsFunc(rules.DefaultPlans, func(d policy.DefaultPlan) bool {
		return d.Name == name && equality.Semantic.DeepEqual(Defaulted(d.Spec), Defaulted(*spec))
	})
}

// Defaulted is a spec with the defaults that the API server sets.
func Defaulted(spec holdfastv1alpha1.BackupPlanSpec) holdfastv1alpha1.BackupPlanSpec {
	spec = *spec.DeepCopy()
	spec.StartingDeadline = cmp.Or(spec.StartingDeadline, holdfastv1alpha1.DefaultStartingDeadline)
	spec.ConcurrencyPolicy = cmp.Or(spec.ConcurrencyPolicy, holdfastv1alpha1.ConcurrencySkip)
	if drill := spec.Drill; drill != nil {
		drill.Timeout = cmp.Or(drill.Timeout, holdfastv1alpha1.DefaultDrillTimeout)
		drill.KeepOnFailure = cmp.Or(drill.KeepOnFailure, holdfastv1alpha1.DefaultDrillKeepOnFailure)
		for _, check := range []**bool{&drill.Checks.Objects, &drill.Checks.WorkloadsReady} {
			if *check == nil {
				*check = new(true)
			}
		}
		if job := drill.Checks.Job; job != nil {
			job.Template.Raw = canonical(job.Template.Raw)
		}
	}
	if keep := spec.Keep; keep != nil {
		if keep.MinGood == nil {
			keep.MinGood = new(int32(holdfastv1alpha1.DefaultMinGood))
		}
		if keep.Failed == nil {
			keep.Failed = new(int32(holdfastv1alpha1.DefaultKeepFailed))
		}
	}
	return spec
}

// canonical is JSON in the one form that encoding/json gives it: the API server and the policy's YAML have forms of their own.
func canonical(text []byte) []byte {
	var value any
	if json.Unmarshal(text, &value) != nil {
		return text
	}
	same, err := json.Marshal(value)
	if err != nil {
		return text
	}
	return same
}

// ForbiddenDrills says why the administrator does not allow the drills of a plan, and what is allowed; empty if they are allowed.
// interval is the shortest time between two of them.
func ForbiddenDrills(name string, spec *holdfastv1alpha1.BackupPlanSpec, rules policy.Own, interval time.Duration) string {
	least, longest := rules.Plans.MinInterval.Duration, rules.Drills.TimeoutLimit()
	timeout, _ := time.ParseDuration(spec.Drill.Timeout) // the API server accepts no other text
	switch {
	case !rules.Drills.Enabled:
		return "the administrator allows no drills (drills.enabled)"
	case timeout > longest:
		return fmt.Sprintf("drill.timeout is %s; the administrator allows %s (drills.maxTimeout)", spec.Drill.Timeout, longest)
	case interval >= least || IsDefault(rules, name, spec):
		return ""
	}
	return fmt.Sprintf("drill.schedule makes drills %s apart; the administrator allows %s or more", interval, least)
}

// namedOlder is how many older plans a refusal names.
const namedOlder = 5

// Forbidden says what of a plan the administrator does not allow, and what is allowed; empty if all is.
func Forbidden(name string, spec *holdfastv1alpha1.BackupPlanSpec, by Context) string {
	if IsDefault(by.Rules, name, spec) {
		return ""
	}
	rules := by.Rules.Plans
	var problems []string
	if least := rules.MinInterval.Duration; by.Interval < least {
		problems = append(problems,
			fmt.Sprintf("the schedule makes runs %s apart; the administrator allows %s or more", by.Interval, least))
	}
	if most := rules.MaxPerNamespace; most > 0 && len(by.Older) >= most {
		named := by.Older[:min(len(by.Older), namedOlder)]
		problems = append(problems, fmt.Sprintf("the administrator allows %d plans in a namespace, and there are %d older ones: %s",
			most, len(by.Older), strings.Join(named, ", ")))
	}
	if wanted := rules.EnforceSchedule; wanted != "" && !due.Same(wanted, spec.Schedule) {
		problems = append(problems, fmt.Sprintf("the administrator enforces schedule %q", wanted))
	}
	if bound := rules.MaxKept > 0 || rules.EnforceKeep != nil; bound && spec.Keep != nil && spec.Keep.DryRun {
		problems = append(problems, "keep.dryRun deletes nothing; the administrator bounds what a plan keeps")
	}
	for _, field := range contradicted(spec.Keep, rules.EnforceKeep) {
		problems = append(problems, fmt.Sprintf("the administrator enforces keep.%s", field))
	}
	return strings.Join(append(problems, tooMany(rules, Keep(rules, spec.Keep))...), "; ")
}

func tooMany(rules policy.Plans, keep *holdfastv1alpha1.Keep) []string {
	switch {
	case rules.MaxKept == 0:
		return nil
	case keep == nil:
		return []string{fmt.Sprintf("keep is not set; the administrator allows a plan to keep %d backups", rules.MaxKept)}
	}
	if named := Counts(keep).Most(); named > rules.MaxKept {
		return []string{fmt.Sprintf("keep names up to %d backups; the administrator allows %d", named, rules.MaxKept)}
	}
	return nil
}

// Counts are the rules of a keep, with the defaults.
func Counts(keep *holdfastv1alpha1.Keep) retention.Keep {
	return retention.Keep{
		Last: int(keep.Last), Hourly: int(keep.Hourly), Daily: int(keep.Daily), Weekly: int(keep.Weekly), Monthly: int(keep.Monthly),
		Yearly: int(keep.Yearly), MinGood: int(ptr.Deref(keep.MinGood, holdfastv1alpha1.DefaultMinGood)),
		Failed: int(ptr.Deref(keep.Failed, holdfastv1alpha1.DefaultKeepFailed)),
	}
}

// Keep is the keep of a plan with what the administrator enforces; nil if neither sets one.
func Keep(rules policy.Plans, keep *holdfastv1alpha1.Keep) *holdfastv1alpha1.Keep {
	enforced := rules.EnforceKeep
	if enforced == nil {
		return keep
	}
	if keep == nil {
		keep = &holdfastv1alpha1.Keep{}
	}
	kept := keep.DeepCopy()
	for _, f := range counts(kept, enforced) {
		if *f.enforced != 0 {
			*f.own = *f.enforced
		}
	}
	if enforced.MinGood != nil {
		kept.MinGood = enforced.MinGood
	}
	if enforced.Failed != nil {
		kept.Failed = enforced.Failed
	}
	return kept
}

// contradicted names the fields of a keep that are set and not as enforced, with the value enforced.
func contradicted(keep, enforced *holdfastv1alpha1.Keep) []string {
	if keep == nil || enforced == nil {
		return nil
	}
	var fields []string
	differ := func(name string, own, enforced int32) {
		if own != enforced {
			fields = append(fields, fmt.Sprintf("%s %d", name, enforced))
		}
	}
	for _, f := range counts(keep, enforced) {
		if *f.own != 0 && *f.enforced != 0 {
			differ(f.name, *f.own, *f.enforced)
		}
	}
	if enforced.MinGood != nil && keep.MinGood != nil && *keep.MinGood != holdfastv1alpha1.DefaultMinGood {
		differ("minGood", *keep.MinGood, *enforced.MinGood)
	}
	if enforced.Failed != nil && keep.Failed != nil && *keep.Failed != holdfastv1alpha1.DefaultKeepFailed {
		differ("failed", *keep.Failed, *enforced.Failed)
	}
	return fields
}

// count is a field of keep for which 0 is unset.
type count struct {
	name          string
	own, enforced *int32
}

func counts(own, enforced *holdfastv1alpha1.Keep) []count {
	return []count{
		{"last", &own.Last, &enforced.Last},
		{"hourly", &own.Hourly, &enforced.Hourly},
		{"daily", &own.Daily, &enforced.Daily},
		{"weekly", &own.Weekly, &enforced.Weekly},
		{"monthly", &own.Monthly, &enforced.Monthly},
		{"yearly", &own.Yearly, &enforced.Yearly},
	}
}
