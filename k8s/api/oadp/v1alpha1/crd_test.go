package v1alpha1_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"

	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
)

type schema = apiextensionsv1.JSONSchemaProps

// definitions returns the generated CRDs by their kind.
func definitions(t *testing.T) map[string]apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	files, err := filepath.Glob("../../../../deploy/crds/oadp.openshift.io_*.yaml")
	require.NoError(t, err)
	byKind := map[string]apiextensionsv1.CustomResourceDefinition{}
	for _, file := range files {
		content, err := os.ReadFile(file)
		require.NoError(t, err)
		var crd apiextensionsv1.CustomResourceDefinition
		require.NoError(t, yaml.UnmarshalStrict(content, &crd))
		require.Len(t, crd.Spec.Versions, 1)
		byKind[crd.Spec.Names.Kind] = crd
	}
	return byKind
}

func rootOf(crd apiextensionsv1.CustomResourceDefinition) schema {
	return *crd.Spec.Versions[0].Schema.OpenAPIV3Schema
}

// at returns the schema of a field.
func at(t *testing.T, s schema, path ...string) schema {
	t.Helper()
	for _, name := range path {
		next, found := s.Properties[name]
		require.True(t, found, "no field %s in %v", name, path)
		s = next
	}
	return s
}

// walk visits a schema and everything in it.
func walk(path string, s schema, visit func(path string, s schema)) {
	visit(path, s)
	for name, property := range s.Properties {
		walk(path+"."+name, property, visit)
	}
	if s.Items != nil && s.Items.Schema != nil {
		walk(path+"[]", *s.Items.Schema, visit)
	}
	if s.AdditionalProperties != nil && s.AdditionalProperties.Schema != nil {
		walk(path+"{}", *s.AdditionalProperties.Schema, visit)
	}
}

func TestKindsAreServedUnderTheNamesToolsUse(t *testing.T) {
	tests := map[string]struct {
		plural, short string
		columns       map[string]string
		order         []string
	}{
		oadpv1alpha1.KindNonAdminBackup: {
			oadpv1alpha1.ResourceNonAdminBackups, "nab",
			map[string]string{
				"Request-Phase":  ".status.phase",
				"Velero-Phase":   ".status.veleroBackup.status.phase",
				"Queue-Position": ".status.queueInfo.estimatedQueuePosition",
			},
			[]string{"Request-Phase", "Velero-Phase", "Queue-Position", "Age"},
		},
		oadpv1alpha1.KindNonAdminRestore: {
			oadpv1alpha1.ResourceNonAdminRestores, "nar",
			map[string]string{
				"Request-Phase":  ".status.phase",
				"Velero-Phase":   ".status.veleroRestore.status.phase",
				"Finalization":   ".status.finalization.phase",
				"Queue-Position": ".status.queueInfo.estimatedQueuePosition",
			},
			[]string{"Request-Phase", "Velero-Phase", "Finalization", "Queue-Position", "Age"},
		},
		oadpv1alpha1.KindNonAdminBackupStorageLocation: {
			oadpv1alpha1.ResourceNonAdminBackupStorageLocations, "nabsl",
			map[string]string{
				"Request-Approved": ".status.conditions[?(@.type=='ClusterAdminApproved')].status",
				"Request-Phase":    ".status.phase",
				"Velero-Phase":     ".status.veleroBackupStorageLocation.status.phase",
			},
			[]string{"Request-Approved", "Request-Phase", "Velero-Phase", "Age"},
		},
		oadpv1alpha1.KindApprovalRequest: {
			oadpv1alpha1.ResourceApprovalRequests, "nabslapprovalrequest",
			map[string]string{
				"Request-Namespace": ".status.veleroBackupStorageLocationApprovalRequest.namespace",
				"Request-Name":      ".status.veleroBackupStorageLocationApprovalRequest.name",
			},
			[]string{"Approved", "Pending-Decision", "Request-Namespace", "Request-Name", "Age"},
		},
		oadpv1alpha1.KindNonAdminDownloadRequest: {
			oadpv1alpha1.ResourceNonAdminDownloadRequests, "nadr",
			map[string]string{"Request-Phase": ".status.phase"},
			[]string{"Request-Phase", "Age"},
		},
	}
	crds := definitions(t)
	require.Len(t, crds, len(tests))
	for kind, tt := range tests {
		t.Run(kind, func(t *testing.T) {
			crd, version := crds[kind], crds[kind].Spec.Versions[0]
			require.Equal(t, oadpv1alpha1.GroupVersion.Group, crd.Spec.Group)
			require.Equal(t, oadpv1alpha1.GroupVersion.Version, version.Name)
			require.Equal(t, apiextensionsv1.NamespaceScoped, crd.Spec.Scope)
			require.Equal(t, tt.plural, crd.Spec.Names.Plural)
			require.Equal(t, []string{tt.short}, crd.Spec.Names.ShortNames)
			require.NotNil(t, version.Subresources.Status)
			var order []string
			for _, column := range version.AdditionalPrinterColumns {
				if column.Priority == 0 { // the others are Holdfast's own, of kubectl get -o wide
					order = append(order, column.Name)
				}
				if want, listed := tt.columns[column.Name]; listed {
					require.Equal(t, want, column.JSONPath)
				}
				if column.Name == "Queue-Position" {
					require.Equal(t, "integer", column.Type)
				}
			}
			require.Equal(t, tt.order, order)
		})
	}
}

func TestCopiesOfVeleroObjectsMayHoldAnything(t *testing.T) {
	mirrored := map[string][][]string{
		oadpv1alpha1.KindNonAdminBackup: {
			{"status", "veleroBackup", "spec"},
			{"status", "veleroBackup", "status"},
			{"status", "veleroDeleteBackupRequest", "status"},
		},
		oadpv1alpha1.KindNonAdminRestore:               {{"status", "veleroRestore", "status"}},
		oadpv1alpha1.KindNonAdminBackupStorageLocation: {{"status", "veleroBackupStorageLocation", "status"}},
		oadpv1alpha1.KindApprovalRequest: {
			{"status", "veleroBackupStorageLocationApprovalRequest", "pendingSpec"},
			{"status", "veleroBackupStorageLocationApprovalRequest", "approvedSpec"},
		},
		oadpv1alpha1.KindNonAdminDownloadRequest: {{"status", "velero", "status"}},
	}
	yes := true
	for kind, crd := range definitions(t) {
		for _, path := range mirrored[kind] {
			got := at(t, rootOf(crd), path...)
			require.NotEmpty(t, got.Description)
			require.Equal(t, schema{Type: "object", Description: got.Description, XPreserveUnknownFields: &yes}, got, path)
		}
	}
}

// Velero's phases grow with its versions: no status may have a list of them.
func TestNoVeleroPhaseIsListedInAnyStatus(t *testing.T) {
	ours := []string{"New", "BackingOff", "Created", "Deleting", "True", "False", "Unknown", "approve", "reject", "revoke"}
	for kind, crd := range definitions(t) {
		walk("status", at(t, rootOf(crd), "status"), func(path string, s schema) {
			for _, value := range s.Enum {
				var word string
				require.NoError(t, yaml.Unmarshal(value.Raw, &word))
				require.Contains(t, ours, word, "%s %s", kind, path)
			}
		})
	}
}

func TestOnlyTheKindThatIsOursHasRules(t *testing.T) {
	for kind, crd := range definitions(t) {
		rules := 0
		walk("", rootOf(crd), func(path string, s schema) {
			for _, rule := range s.XValidations {
				rules++
				require.Regexp(t, `^[A-Za-z].* .*\.$`, rule.Message, "%s %s: no sentence", kind, path)
			}
		})
		if kind == oadpv1alpha1.KindApprovalRequest {
			require.Equal(t, 3, rules)
		} else {
			require.Zero(t, rules, kind)
		}
	}
}

func TestWhatIsRequiredIsWhatTheNonAdminControllerRequires(t *testing.T) {
	crds := definitions(t)
	required := func(kind string, path ...string) []string { return at(t, rootOf(crds[kind]), path...).Required }

	require.Equal(t, []string{"backupSpec"}, required(oadpv1alpha1.KindNonAdminBackup, "spec"))
	require.Equal(t, []string{"estimatedQueuePosition"}, required(oadpv1alpha1.KindNonAdminBackup, "status", "queueInfo"))
	require.Equal(t, []string{"restoreSpec"}, required(oadpv1alpha1.KindNonAdminRestore, "spec"))
	require.Equal(t, []string{"backupStorageLocationSpec"}, required(oadpv1alpha1.KindNonAdminBackupStorageLocation, "spec"))
	location := []string{"spec", "backupStorageLocationSpec"}
	require.Equal(t, []string{"objectStorage", "provider"}, required(oadpv1alpha1.KindNonAdminBackupStorageLocation, location...))
	store, secret := append(slices.Clone(location), "objectStorage"), append(slices.Clone(location), "credential")
	require.Equal(t, []string{"bucket"}, required(oadpv1alpha1.KindNonAdminBackupStorageLocation, store...))
	require.Equal(t, []string{"key"}, required(oadpv1alpha1.KindNonAdminBackupStorageLocation, secret...))
	require.Equal(t, []string{"target"}, required(oadpv1alpha1.KindNonAdminDownloadRequest, "spec"))
	for kind, crd := range crds {
		require.Empty(t, rootOf(crd).Required, kind)
		walk("status", at(t, rootOf(crd), "status"), func(path string, s schema) {
			if len(s.Required) > 0 {
				require.Contains(t, []string{"status.conditions[]", "status.queueInfo", "status.lastDecision", "status.lastDrill"}, path, kind)
			}
		})
	}
}

// marker matches text for generators or developers, which does not help a reader of a description.
var marker = regexp.MustCompile(`\+(optional|required|listType|listMapKey|kubebuilder|genclient)|TODO|FIXME|XXX`)

func TestEveryFieldOfOursIsDescribed(t *testing.T) {
	for kind, crd := range definitions(t) {
		for _, part := range []string{"spec", "status"} {
			walk(part, at(t, rootOf(crd), part), func(path string, s schema) {
				veleros := strings.HasPrefix(path, "spec.") && strings.Count(path, ".") > 1
				element := strings.HasSuffix(path, "[]") || strings.HasSuffix(path, "{}")
				if veleros {
					return
				}
				require.NotRegexp(t, marker, s.Description, "%s %s", kind, path)
				if !element {
					require.NotEmpty(t, s.Description, "%s %s", kind, path)
				}
				for _, value := range s.Enum {
					require.Contains(t, s.Description, strings.Trim(string(value.Raw), `"`), "%s %s does not name a value", kind, path)
				}
			})
		}
	}
}
