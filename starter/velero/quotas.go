package velero

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"holdfast.dev/holdfast/activities"
	"holdfast.dev/holdfast/activities/usage"
	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
	"holdfast.dev/holdfast/k8s/owner"
	"holdfast.dev/holdfast/k8s/policy"
	"holdfast.dev/holdfast/k8s/policy/quota"
	"holdfast.dev/holdfast/starter/operator"
)

// Quota is what a namespace uses of its limits.
type Quota struct {
	Namespace string `json:"namespace"`
	// Rule is the quota of the policy that selects the namespace, from 0; nil if none does. Selector is how it selects.
	Rule     *int   `json:"rule,omitempty"`
	Selector string `json:"selector,omitempty"`
	// Uses are in the order in which limits are judged.
	Uses []Use `json:"uses"`
	// Waiting are the backups that are held back, in the order in which they have places.
	Waiting []WaitingBackup `json:"waiting"`
}

// Use is what is used of one limit.
type Use struct {
	Field quota.Field `json:"field"`
	Used  int64       `json:"used"`
	// Limit is zero if there is none.
	Limit int64 `json:"limit,omitempty"`
}

// WaitingBackup is a NonAdminBackup that a quota holds back.
type WaitingBackup struct {
	Name    string    `json:"name"`
	Created time.Time `json:"created"`
	Message string    `json:"message"`
}

// amount shows a number of a limit.
func (u Use) amount(value int64) string {
	if u.Field == quota.MaxBytes {
		return quota.Bytes(value)
	}
	return fmt.Sprint(value)
}

// Summary is one line: what is used of each limit that is set, and how many backups wait.
func (q *Quota) Summary() string {
	var parts []string
	for _, use := range q.Uses {
		if use.Limit > 0 {
			parts = append(parts, fmt.Sprintf("%s %s of %s", use.Field, use.amount(use.Used), use.amount(use.Limit)))
		}
	}
	line := strings.Join(parts, ", ")
	switch len(q.Waiting) {
	case 0:
		return line
	case 1:
		return line + "; 1 waits"
	}
	return fmt.Sprintf("%s; %d wait", line, len(q.Waiting))
}

// Print shows it to a person.
func (q *Quota) Print(out io.Writer) error {
	sheet := operator.NewSheet(out)
	sheet.Line("Namespace", q.Namespace)
	rule := "none: no quota of the policy selects this namespace"
	if q.Rule != nil {
		rule = fmt.Sprintf("quotas[%d] of the policy, which selects %s", *q.Rule, q.Selector)
	}
	sheet.Line("Quota", rule)
	for _, use := range q.Uses {
		limit := ", no limit"
		if use.Limit > 0 {
			limit = " of " + use.amount(use.Limit)
		}
		sheet.Line(string(use.Field), use.amount(use.Used)+limit)
	}
	for _, b := range q.Waiting {
		sheet.Line("Waits", fmt.Sprintf("%s, created %s: %s", b.Name, b.Created.UTC().Format(time.RFC3339), b.Message))
	}
	return sheet.Flush()
}

// QuotaScope is whose quotas are read.
type QuotaScope struct {
	// ClusterID is the worker's: by it one knows which backups were made here.
	ClusterID, OADPNamespace string
	// Namespace is read whether it has limits or not. If it is empty, all namespaces that have limits are read.
	Namespace string
}

// ReadQuotas reads what namespaces use of their limits, in the order of their names. A *check.UnusableError means that the policy
// cannot be used.
func ReadQuotas(ctx context.Context, reader client.Reader, scope QuotaScope, now time.Time) ([]Quota, error) {
	rules, err := policy.ReadOwn(ctx, reader, scope.OADPNamespace)
	if err != nil || (scope.Namespace == "" && len(rules.Quotas) == 0) {
		return nil, err
	}
	namespaces, err := scope.namespaces(ctx, reader)
	if err != nil {
		return nil, err
	}
	backups := map[string][]oadpv1alpha1.NonAdminBackup{}
	made := map[usage.Made]bool{}
	err = activities.EachPage(ctx, reader, func(page *oadpv1alpha1.NonAdminBackupList) {
		for _, nab := range page.Items {
			backups[nab.Namespace] = append(backups[nab.Namespace], nab)
			if usage.Counted(&nab, scope.ClusterID).Stored {
				made[usage.Made{Namespace: nab.Namespace, Name: owner.Claimed(&nab)}] = true
			}
		}
	}, client.InNamespace(scope.Namespace))
	if err != nil {
		return nil, fmt.Errorf("list NonAdminBackups: %w", err)
	}
	held, err := usage.HeldBytes(ctx, reader, scope.OADPNamespace, made)
	if err != nil {
		return nil, err
	}
	quotas := []Quota{}
	for _, namespace := range namespaces {
		of, rule, found := rules.QuotaOf(namespace.Labels)
		if scope.Namespace == "" && len(of.Set()) == 0 {
			continue
		}
		q := quotaOf(backups[namespace.Name], of.Limits, held[namespace.Name], func(nab *oadpv1alpha1.NonAdminBackup) quota.Backup {
			return usage.Counted(nab, scope.ClusterID)
		}, now)
		q.Namespace = namespace.Name
		if found {
			q.Rule, q.Selector = &rule, selectorText(of.NamespaceSelector)
		}
		quotas = append(quotas, q)
	}
	slices.SortFunc(quotas, func(a, b Quota) int { return cmp.Compare(a.Namespace, b.Namespace) })
	return quotas, nil
}

func (s QuotaScope) namespaces(ctx context.Context, reader client.Reader) ([]metav1.PartialObjectMetadata, error) {
	kind := corev1.SchemeGroupVersion.WithKind("Namespace")
	if s.Namespace == "" {
		var all []metav1.PartialObjectMetadata
		err := eachMetadata(ctx, reader, kind, func(object *metav1.PartialObjectMetadata) {
			if object.Name != s.OADPNamespace && !systems(object.Name) {
				all = append(all, *object)
			}
		})
		return all, err
	}
	namespace := metav1.PartialObjectMetadata{}
	namespace.SetGroupVersionKind(kind)
	if err := reader.Get(ctx, client.ObjectKey{Name: s.Namespace}, &namespace); err != nil {
		return nil, fmt.Errorf("get Namespace %s: %w", s.Namespace, err)
	}
	return []metav1.PartialObjectMetadata{namespace}, nil
}

// quotaOf makes a Quota of the backups of one namespace.
func quotaOf(backups []oadpv1alpha1.NonAdminBackup, limits quota.Limits, bytes int64,
	count func(*oadpv1alpha1.NonAdminBackup) quota.Backup, now time.Time,
) Quota {
	q := Quota{Uses: []Use{}, Waiting: []WaitingBackup{}}
	var all []quota.Backup
	for i := range backups {
		nab := &backups[i]
		all = append(all, count(nab))
		if usage.OverQuota(nab) {
			accepted := meta.FindStatusCondition(nab.Status.Conditions, string(oadpv1alpha1.NonAdminConditionAccepted))
			q.Waiting = append(q.Waiting, WaitingBackup{Name: nab.Name, Created: nab.CreationTimestamp.UTC(), Message: accepted.Message})
		}
	}
	slices.SortFunc(q.Waiting, func(a, b WaitingBackup) int {
		return cmp.Or(a.Created.Compare(b.Created), cmp.Compare(a.Name, b.Name))
	})
	used := quota.Count(all, now)
	used.Bytes = bytes
	for _, field := range quota.Fields() {
		q.Uses = append(q.Uses, Use{Field: field, Used: used.Used(field), Limit: limits.Limit(field)})
	}
	return q
}

func selectorText(selector *metav1.LabelSelector) string {
	if len(selector.MatchLabels)+len(selector.MatchExpressions) == 0 {
		return "all namespaces"
	}
	return metav1.FormatLabelSelector(selector)
}
