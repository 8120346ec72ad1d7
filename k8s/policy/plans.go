package policy

import (
	"encoding/json"
	"fmt"
	"strings"

	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	holdfastv1alpha1 "holdfast.dev/holdfast/k8s/api/holdfast/v1alpha1"
	"holdfast.dev/holdfast/workflows/plan/due"
)

// Plans is what tenants may write in BackupPlans. Its zero value allows everything.
type Plans struct {
	// MinInterval is the shortest time between two runs of a plan; 0 is any.
	MinInterval metav1.Duration `json:"minInterval,omitempty"`
	// MaxPerNamespace is how many plans a namespace may have, without the default ones; 0 is any number.
	MaxPerNamespace int `json:"maxPerNamespace,omitempty"`
	// MaxKept is how many backups keep may name in all; 0 is any number. With it each plan must have a keep.
	MaxKept int `json:"maxKept,omitempty"`
	// EnforceSchedule is the schedule that every plan must have; empty is any.
	EnforceSchedule string `json:"enforceSchedule,omitempty"`
	// EnforceKeep holds values that the keep of every plan must have, in the fields that are set; a plan that leaves one out gets
	// it.
	EnforceKeep *holdfastv1alpha1.Keep `json:"enforceKeep,omitempty"`
}

// DefaultPlan is a plan that the administrator gives to namespaces.
type DefaultPlan struct {
	// Name of the BackupPlan.
	Name string `json:"name"`
	// NamespaceSelector selects the namespaces by their labels; nil selects none, an empty one all.
	NamespaceSelector *metav1.LabelSelector `json:"namespaceSelector"`
	// Spec of the BackupPlan.
	Spec holdfastv1alpha1.BackupPlanSpec `json:"spec"`
}

// Selects reports whether a namespace with these labels gets the plan.
func (d DefaultPlan) Selects(namespace map[string]string) bool {
	return selects(d.NamespaceSelector, namespace)
}

func decodePlans(name string, value json.RawMessage, into *Plans) []string {
	problems := decodeStruct(name, value, into)
	for _, bound := range []struct {
		field    string
		negative bool
	}{
		{"minInterval", into.MinInterval.Duration < 0},
		{"maxPerNamespace", into.MaxPerNamespace < 0},
		{"maxKept", into.MaxKept < 0},
	} { // in their order: the same policy has the same problem each time that it is read
		if bound.negative {
			problems = append(problems, fmt.Sprintf("%s.%s must not be negative", name, bound.field))
		}
	}
	problems = append(problems, checkKeep(name+".enforceKeep", into.EnforceKeep)...)
	if into.EnforceSchedule != "" {
		if _, err := due.Parse(into.EnforceSchedule, ""); err != nil {
			problems = append(problems, fmt.Sprintf("%s.enforceSchedule: %v", name, err))
		}
	}
	return problems
}

// checkKeep returns which counts are none that the API server would take in a plan. Unlike there, no dry run can be enforced.
func checkKeep(path string, keep *holdfastv1alpha1.Keep) []string {
	if keep == nil {
		return nil
	}
	var problems []string
	for _, count := range []struct {
		field       string
		value       *int32
		least, most int32
	}{
		{"last", &keep.Last, 0, 1000},
		{"hourly", &keep.Hourly, 0, 1000},
		{"daily", &keep.Daily, 0, 1000},
		{"weekly", &keep.Weekly, 0, 1000},
		{"monthly", &keep.Monthly, 0, 240},
		{"yearly", &keep.Yearly, 0, 30},
		{"minGood", keep.MinGood, 1, 100},
		{"failed", keep.Failed, 0, 100},
	} {
		if count.value != nil && (*count.value < count.least || *count.value > count.most) {
			problems = append(problems, fmt.Sprintf("%s.%s must be between %d and %d", path, count.field, count.least, count.most))
		}
	}
	if keep.DryRun {
		problems = append(problems, path+".dryRun cannot be enforced")
	}
	return problems
}

func decodeDefaultPlans(name string, value json.RawMessage, into *[]DefaultPlan) []string {
	var documents []json.RawMessage
	if err := json.Unmarshal(value, &documents); err != nil {
		return []string{fmt.Sprintf("%s must be a list: %v", name, err)}
	}
	var problems []string
	known := map[string]bool{}
	for i, document := range documents {
		path := fmt.Sprintf("%s[%d]", name, i)
		var plan DefaultPlan
		problems = append(problems, decodeStruct(path, document, &plan)...)
		problems = append(problems, plan.check(path, document)...)
		if known[plan.Name] {
			problems = append(problems, fmt.Sprintf("%s.name: %q is used twice", path, plan.Name))
		}
		known[plan.Name] = true
		*into = append(*into, plan)
	}
	return problems
}

// check returns what is wrong with a default plan that could be decoded. The API server judges the rest when the plan is made.
func (d DefaultPlan) check(path string, document json.RawMessage) []string {
	var problems []string
	if wrong := validation.IsDNS1123Label(d.Name); len(wrong) > 0 {
		problems = append(problems, fmt.Sprintf("%s.name %q: %s", path, d.Name, strings.Join(wrong, ", ")))
	}
	problems = append(problems, checkSelector(path, d.NamespaceSelector)...)
	if _, err := due.Parse(d.Spec.Schedule, d.Spec.TimeZone); err != nil {
		problems = append(problems, fmt.Sprintf("%s.spec: %v", path, err))
	}
	if d.Spec.Template.Spec.BackupSpec == nil {
		return append(problems, path+".spec.template.spec.backupSpec must be set, and readable: "+d.Spec.Template.Spec.Unreadable)
	}
	var inner struct {
		Spec struct {
			Template struct {
				Spec struct {
					BackupSpec json.RawMessage `json:"backupSpec"`
				} `json:"spec"`
			} `json:"template"`
		} `json:"spec"`
	}
	if err := json.Unmarshal(document, &inner); err != nil {
		return append(problems, fmt.Sprintf("%s: %v", path, err))
	}
	// Its decoder is lenient, since tenants' specs must never fail a list.
	return append(problems,
		decodeStruct(path+".spec.template.spec.backupSpec", inner.Spec.Template.Spec.BackupSpec, &velerov1.BackupSpec{})...)
}
