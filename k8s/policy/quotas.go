package policy

import (
	"context"
	"encoding/json"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"holdfast.dev/holdfast/k8s/policy/quota"
)

// Quota limits the backups of each namespace that it selects.
type Quota struct {
	// NamespaceSelector selects the namespaces by their labels; an empty one selects all.
	NamespaceSelector *metav1.LabelSelector `json:"namespaceSelector"`
	quota.Limits
}

// QuotaOf returns the quota of a namespace with these labels, the first that selects it, and its place in Quotas. It is false if
// none does.
func (o Own) QuotaOf(namespace map[string]string) (of Quota, at int, found bool) {
	for i, each := range o.Quotas {
		if selects(each.NamespaceSelector, namespace) {
			return each, i, true
		}
	}
	return Quota{}, 0, false
}

// ReadOwn reads Holdfast's own part of the policy once, for a command. Without one it is empty.
func ReadOwn(ctx context.Context, reader client.Reader, oadpNamespace string) (Own, error) {
	source := &Source{reader: reader, namespace: oadpNamespace}
	configMap, err := source.configMap(ctx)
	if err != nil {
		return Own{}, err
	}
	read := source.keyOf(configMap, ConfigMapOwnKey, ParseOwn)
	if read.err != nil {
		return Own{}, read.err
	}
	return read.held.policy.Own, nil
}

func decodeQuotas(name string, value json.RawMessage, into *[]Quota) []string {
	var documents []json.RawMessage
	if err := json.Unmarshal(value, &documents); err != nil {
		return []string{fmt.Sprintf("%s must be a list: %v", name, err)}
	}
	var problems []string
	for i, document := range documents {
		path := fmt.Sprintf("%s[%d]", name, i)
		var q Quota
		problems = append(problems, q.decode(path, document)...)
		problems = append(problems, checkSelector(path, q.NamespaceSelector)...)
		for _, field := range quota.Fields() {
			if q.Limit(field) < 0 {
				problems = append(problems, fmt.Sprintf("%s.%s must not be negative; 0 is no limit", path, field))
			}
		}
		*into = append(*into, q)
	}
	return problems
}

// decode reads the fields of one quota. Those of Limits are beside the selector.
func (q *Quota) decode(path string, document json.RawMessage) []string {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(document, &fields); err != nil {
		return []string{fmt.Sprintf("%s must be a mapping: %v", path, err)}
	}
	return decodeEach(fields, func(name string, value json.RawMessage) []string {
		if name == "namespaceSelector" {
			return decodeField(path+".", name, value, q)
		}
		return decodeField(path+".", name, value, &q.Limits)
	})
}

// checkSelector returns what is wrong with a selector of namespaces.
func checkSelector(path string, selector *metav1.LabelSelector) []string {
	if selector == nil {
		return []string{path + ".namespaceSelector must be set: {} selects all namespaces"}
	}
	if _, err := metav1.LabelSelectorAsSelector(selector); err != nil {
		return []string{fmt.Sprintf("%s.namespaceSelector: %v", path, err)}
	}
	return nil
}

// selects reports whether a selector selects a namespace with these labels; nil selects none, an empty one all.
func selects(selector *metav1.LabelSelector, namespace map[string]string) bool {
	by, err := metav1.LabelSelectorAsSelector(selector)
	return err == nil && by.Matches(labels.Set(namespace))
}
