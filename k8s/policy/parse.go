package policy

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"

	"holdfast.dev/holdfast/k8s/policy/check"
)

var errEmpty = errors.New("the document is empty: write {} for a policy that enforces nothing")

// Parse reads the part of a policy that is OADP's, spec.nonAdmin, from YAML or JSON. It is strict, since a misspelt field would
// not be enforced: an unknown or duplicate field, a wrong type, and a value that no administrator may enforce are errors that
// name the field.
func Parse(document []byte) (Policy, error) {
	var p Policy
	problems, err := parse(document, p.decode)
	if err == nil {
		err = joined(append(problems, p.check()...))
	}
	if err != nil {
		return Policy{}, err
	}
	return p, nil
}

// ParseOwn reads the part of a policy that is Holdfast's own, as strictly.
func ParseOwn(document []byte) (Policy, error) {
	var p Policy
	problems, err := parse(document, p.decodeOwn)
	if wrong := check.NameProblems(p.RestoreFromTenantsLocations.Role()); len(wrong) > 0 {
		problems = append(problems, "restoreFromTenantsLocations.clusterRole "+strings.Join(wrong, ", "))
	}
	if err == nil {
		err = joined(problems)
	}
	if err != nil {
		return Policy{}, err
	}
	return p, nil
}

// parse decodes a document's fields and returns what is wrong with them.
func parse(document []byte, decode func(string, json.RawMessage) []string) ([]string, error) {
	content, err := yaml.YAMLToJSONStrict(document)
	if err != nil {
		return nil, fmt.Errorf("read YAML: %w", err)
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(content, &fields); err != nil {
		return nil, fmt.Errorf("the document must be a mapping: %w", err)
	}
	if fields == nil {
		return nil, errEmpty
	}
	return decodeEach(fields, decode), nil
}

func joined(problems []string) error {
	if len(problems) == 0 {
		return nil
	}
	return errors.New(strings.Join(problems, "; "))
}

// decodeOwn reads one field of Holdfast's own part.
func (p *Policy) decodeOwn(name string, value json.RawMessage) []string {
	switch name {
	case "restoreFromTenantsLocations":
		return decodeStruct(name, value, &p.RestoreFromTenantsLocations)
	case "tenantsBuckets":
		return decodeTenantsBuckets(name, value, &p.TenantsBuckets)
	case "plans":
		return decodePlans(name, value, &p.Plans)
	case "defaultPlans":
		return decodeDefaultPlans(name, value, &p.DefaultPlans)
	case "queue":
		return decodeQueue(name, value, &p.Queue)
	case "quotas":
		return decodeQuotas(name, value, &p.Quotas)
	case "drills":
		return decodeDrills(name, value, &p.Drills)
	}
	return []string{name + " is not a known field"}
}

// decode reads one field of the document into the policy and returns what is wrong with it.
func (p *Policy) decode(name string, value json.RawMessage) []string {
	switch name {
	case "enable": // OADP's switch for its own controller
		return nil
	case "enforceBackupSpec":
		p.EnforceBackupSpec = &velerov1.BackupSpec{}
		return decodeStruct(name, value, p.EnforceBackupSpec)
	case "enforceRestoreSpec":
		p.EnforceRestoreSpec = &velerov1.RestoreSpec{}
		return decodeStruct(name, value, p.EnforceRestoreSpec)
	case "enforceBSLSpec":
		p.EnforceBSLSpec = &StorageLocationSpec{}
		return decodeStruct(name, value, p.EnforceBSLSpec)
	default:
		return decodeField("", name, value, p)
	}
}

// decodeStruct reads the fields of an object one by one, so that each error names its field.
func decodeStruct(path string, value json.RawMessage, into any) []string {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(value, &fields); err != nil {
		return []string{fmt.Sprintf("%s must be a mapping: %v", path, err)}
	}
	return decodeEach(fields, func(name string, value json.RawMessage) []string {
		return decodeField(path+".", name, value, into)
	})
}

// decodeEach decodes fields in the order of their names, without null ones: null is the same as absent.
func decodeEach(fields map[string]json.RawMessage, decode func(string, json.RawMessage) []string) []string {
	var problems []string
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		if string(fields[name]) != "null" {
			problems = append(problems, decode(name, fields[name])...)
		}
	}
	return problems
}

// decodeField reads one field of an object into the struct that into points to, and leaves its other fields alone.
func decodeField(prefix, name string, value json.RawMessage, into any) []string {
	object, err := json.Marshal(map[string]json.RawMessage{name: value})
	if err != nil {
		return []string{fmt.Sprintf("%s%s: %v", prefix, name, err)}
	}
	unknown, err := kjson.UnmarshalStrict(object, into)
	var wrong *json.UnmarshalTypeError
	switch {
	case errors.As(err, &wrong):
		return []string{fmt.Sprintf("%s%s must be of type %s, not %s", prefix, wrong.Field, wrong.Type, wrong.Value)}
	case err != nil:
		return []string{fmt.Sprintf("%s%s: %v", prefix, name, err)}
	}
	problems := make([]string, 0, len(unknown))
	for _, problem := range unknown {
		field := name
		var at kjson.FieldError
		if errors.As(problem, &at) {
			field = at.FieldPath()
		}
		problems = append(problems, fmt.Sprintf("%s%s is not a known field", prefix, field))
	}
	return problems
}
