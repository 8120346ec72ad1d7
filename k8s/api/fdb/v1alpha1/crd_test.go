package v1alpha1_test

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"

	fdbv1alpha1 "holdfast.dev/holdfast/k8s/api/fdb/v1alpha1"
)

type schema = apiextensionsv1.JSONSchemaProps

// definitions returns the generated CRDs by their kind. What the API server makes of them is tested in test/deploy.
func definitions(t *testing.T) map[string]apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	files, err := filepath.Glob("../../../../deploy/components/fdb/crds/fdb.holdfast.dev_*.yaml")
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

// walk visits a schema and all that is in it.
func walk(path string, s schema, visit func(path string, s schema)) {
	visit(path, s)
	for name, property := range s.Properties {
		walk(path+"."+name, property, visit)
	}
	if s.Items != nil && s.Items.Schema != nil {
		walk(path+"[]", *s.Items.Schema, visit)
	}
}

func TestKindsAreServedUnderTheNamesPeopleUse(t *testing.T) {
	tests := map[string]struct {
		plural, short string
		columns       []string
	}{
		fdbv1alpha1.KindFoundationDBBackup: {
			fdbv1alpha1.ResourceFoundationDBBackups, "fdbb",
			[]string{"Generation", "Reconciled", "Oldest-Data", "Latest-Restorable", "Age"},
		},
		fdbv1alpha1.KindFoundationDBRestore: {
			fdbv1alpha1.ResourceFoundationDBRestores, "fdbr", []string{"State", "Percent", "Restored-Version", "Age"},
		},
	}
	crds := definitions(t)
	require.ElementsMatch(t, slices.Collect(maps.Keys(tests)), slices.Collect(maps.Keys(crds)))
	for kind, tt := range tests {
		t.Run(kind, func(t *testing.T) {
			crd, version := crds[kind], crds[kind].Spec.Versions[0]
			require.Equal(t, fdbv1alpha1.GroupVersion.Group, crd.Spec.Group)
			require.Equal(t, fdbv1alpha1.GroupVersion.Version, version.Name)
			require.Equal(t, apiextensionsv1.NamespaceScoped, crd.Spec.Scope)
			require.Equal(t, tt.plural, crd.Spec.Names.Plural)
			require.Equal(t, []string{tt.short}, crd.Spec.Names.ShortNames)
			require.NotNil(t, version.Subresources.Status)
			var columns []string
			for _, column := range version.AdditionalPrinterColumns {
				columns = append(columns, column.Name)
			}
			require.Equal(t, tt.columns, columns)
		})
	}
}

func TestEveryRuleSaysWhatIsWrong(t *testing.T) {
	for kind, crd := range definitions(t) {
		walk("", rootOf(crd), func(path string, s schema) {
			for _, rule := range s.XValidations {
				require.Regexp(t, `^[A-Za-z.]+ .* .*`, rule.Message, "%s %s: no sentence", kind, path)
			}
		})
		walk("spec", rootOf(crd).Properties["spec"], func(path string, s schema) {
			require.Empty(t, s.Pattern, "%s %s: a pattern's refusal is no sentence", kind, path)
		})
	}
}

func TestEveryFieldIsDescribed(t *testing.T) {
	for kind, crd := range definitions(t) {
		for _, part := range []string{"spec", "status"} {
			walk(part, rootOf(crd).Properties[part], func(path string, s schema) {
				if !strings.HasSuffix(path, "[]") {
					require.NotEmpty(t, s.Description, "%s %s", kind, path)
				}
			})
		}
	}
}
