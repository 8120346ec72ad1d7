package check_test

import (
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"holdfast.dev/holdfast/k8s/policy/check"
	"holdfast.dev/holdfast/k8s/policy/policytest"
)

func TestEveryFieldOfBackupSpecIsEnforced(t *testing.T) {
	testEveryField[velerov1.BackupSpec](t)
}

func TestEveryFieldOfRestoreSpecIsEnforced(t *testing.T) {
	testEveryField[velerov1.RestoreSpec](t)
}

func testEveryField[T any, P check.SpecPointer[T]](t *testing.T) {
	t.Helper()
	for i := range reflect.TypeFor[T]().NumField() {
		field := reflect.TypeFor[T]().Field(i)
		enforced := P(new(T))
		policytest.SetNonZero(t, reflect.ValueOf(enforced).Elem().Field(i), 0)

		t.Run("unset "+field.Name+" is filled with a copy", func(t *testing.T) {
			spec, before := P(new(T)), enforced.DeepCopy()
			require.NoError(t, check.Enforced("spec.x", spec, enforced))
			check.ApplyEnforced(spec, enforced)
			require.Equal(t, *enforced, *spec)

			policytest.Mutate(reflect.ValueOf(spec).Elem().Field(i))
			require.Equal(t, *before, *enforced, "the administrator's policy was reached through the result")
		})
		t.Run("the enforced value of "+field.Name+" is allowed", func(t *testing.T) {
			require.NoError(t, check.Enforced("spec.x", P(enforced.DeepCopy()), enforced))
		})
		t.Run("another value of "+field.Name+" is refused", func(t *testing.T) {
			spec := P(new(T))
			setOther(t, reflect.ValueOf(spec).Elem().Field(i))
			err := check.Enforced("spec.x", spec, enforced)
			var verdict *check.InvalidSpecError
			require.ErrorAs(t, err, &verdict)
			require.True(t, verdict.External, "a change of policy can make the spec valid")
			require.Contains(t, err.Error(), "the administrator has restricted spec.x."+check.JSONName(field)+" field value to ")
			require.NotContains(t, err.Error(), "0x", "an address was printed")
		})
		t.Run("what is not enforced leaves "+field.Name+" alone", func(t *testing.T) {
			spec := P(new(T))
			setOther(t, reflect.ValueOf(spec).Elem().Field(i))
			before := spec.DeepCopy()
			require.NoError(t, check.Enforced("spec.x", spec, P(new(T))))
			check.ApplyEnforced(spec, P(new(T)))
			require.Equal(t, *before, *spec)
		})
	}
}

func TestEnforcedValuesArePrintedReadably(t *testing.T) {
	yes := true
	tests := map[string]struct {
		enforced velerov1.BackupSpec
		want     string
	}{
		"a pointer is printed by its value": {velerov1.BackupSpec{SnapshotVolumes: &yes}, "snapshotVolumes field value to true"},
		"a duration is printed as written":  {velerov1.BackupSpec{TTL: metav1.Duration{Duration: 90e9}}, "ttl field value to 1m30s"},
		"a list of words is printed in brackets": {
			velerov1.BackupSpec{IncludedResources: []string{"pods", "secrets"}}, "includedResources field value to [pods secrets]",
		},
		"a struct is printed as JSON": {
			velerov1.BackupSpec{LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"b": "2", "a": "1"}}},
			`labelSelector field value to {"matchLabels":{"a":"1","b":"2"}}`,
		},
		"a map is printed as JSON": {
			velerov1.BackupSpec{OrderedResources: map[string]string{"pods": "x/y"}}, `orderedResources field value to {"pods":"x/y"}`,
		},
		"a list of pointers is printed as JSON": {
			velerov1.BackupSpec{OrLabelSelectors: []*metav1.LabelSelector{{MatchLabels: map[string]string{"a": "1"}}}},
			`orLabelSelectors field value to [{"matchLabels":{"a":"1"}}]`,
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			spec := velerov1.BackupSpec{}
			value := reflect.ValueOf(tt.enforced)
			for i := range value.NumField() {
				if !value.Field(i).IsZero() {
					setOther(t, reflect.ValueOf(&spec).Elem().Field(i))
				}
			}
			require.EqualError(t, check.Enforced("spec.backupSpec", &spec, &tt.enforced),
				"the administrator has restricted spec.backupSpec."+tt.want)
		})
	}
}

func TestEmptyListsAndMapsAreAsGoodAsNone(t *testing.T) {
	empty := &velerov1.BackupSpec{IncludedResources: []string{}, OrderedResources: map[string]string{}}
	full := &velerov1.BackupSpec{IncludedResources: []string{"pods"}, OrderedResources: map[string]string{"a": "b"}}

	require.NoError(t, check.Enforced("spec.x", full, empty), "an empty value cannot be enforced")
	require.NoError(t, check.Enforced("spec.x", empty, full))
	check.ApplyEnforced(empty, full)
	require.Equal(t, full, empty)
}

// setOther gives a field another value than policytest.SetNonZero with seed 0. false is the only other bool.
func setOther(t *testing.T, field reflect.Value) {
	t.Helper()
	policytest.SetNonZero(t, field, 1)
	if field.Kind() == reflect.Pointer && field.Elem().Kind() == reflect.Bool {
		field.Elem().SetBool(false)
	}
}
