package house

import (
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apischema "k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	fdbv1alpha1 "holdfast.dev/holdfast/k8s/api/fdb/v1alpha1"
	holdfastv1alpha1 "holdfast.dev/holdfast/k8s/api/holdfast/v1alpha1"
)

type schema = apiextensionsv1.JSONSchemaProps

// ourKinds are the CRDs of Holdfast's own groups. OADP's are OADP's.
var ourKinds = []string{"deploy/crds/holdfast.dev_*.yaml", "deploy/components/fdb/crds/fdb.holdfast.dev_*.yaml"}

// definitions returns the generated CRDs by their kind. test/deploy tests how the API server applies them.
func definitions(t *testing.T) map[string]apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	byKind := map[string]apiextensionsv1.CustomResourceDefinition{}
	for _, pattern := range ourKinds {
		files, err := filepath.Glob(filepath.Join(root, pattern))
		require.NoError(t, err)
		require.NotEmpty(t, files, pattern)
		for _, file := range files {
			content, err := os.ReadFile(file)
			require.NoError(t, err)
			var crd apiextensionsv1.CustomResourceDefinition
			require.NoError(t, yaml.UnmarshalStrict(content, &crd))
			require.Len(t, crd.Spec.Versions, 1)
			byKind[crd.Spec.Names.Kind] = crd
		}
	}
	return byKind
}

func rootOf(crd apiextensionsv1.CustomResourceDefinition) schema {
	return *crd.Spec.Versions[0].Schema.OpenAPIV3Schema
}

// walk visits a schema and everything in it, but for what is Velero's.
func walk(path string, s schema, visit func(path string, s schema)) {
	visit(path, s)
	if strings.HasSuffix(path, ".backupSpec") {
		return
	}
	for name, property := range s.Properties {
		walk(path+"."+name, property, visit)
	}
	if s.Items != nil && s.Items.Schema != nil {
		walk(path+"[]", *s.Items.Schema, visit)
	}
}

func TestKindsAreServedUnderTheNamesPeopleUse(t *testing.T) {
	tests := map[string]struct {
		group         apischema.GroupVersion
		plural, short string
		columns       []string
	}{
		holdfastv1alpha1.KindBackupPlan: {
			holdfastv1alpha1.GroupVersion, holdfastv1alpha1.ResourceBackupPlans, "bplan",
			[]string{"Schedule", "Paused", "Last-Good", "Last-Verified", "Next-Run", "Objective", "Ready", "Reason"},
		},
		holdfastv1alpha1.KindRestoreDrill: {
			holdfastv1alpha1.GroupVersion, holdfastv1alpha1.ResourceRestoreDrills, "drill",
			[]string{"Backup", "Phase", "Verified", "Reason", "Drill-Namespace", "Age"},
		},
		fdbv1alpha1.KindFoundationDBBackup: {
			fdbv1alpha1.GroupVersion, fdbv1alpha1.ResourceFoundationDBBackups, "fdbb",
			[]string{"Generation", "Ready", "Reconciled", "Oldest-Data", "Latest-Restorable", "Age", "Reason"},
		},
		fdbv1alpha1.KindFoundationDBDrill: {
			fdbv1alpha1.GroupVersion, fdbv1alpha1.ResourceFoundationDBDrills, "fdbdrill",
			[]string{"Backup", "Target", "Phase", "Verified", "Reason", "Age"},
		},
		fdbv1alpha1.KindFoundationDBRestore: {
			fdbv1alpha1.GroupVersion, fdbv1alpha1.ResourceFoundationDBRestores, "fdbr",
			[]string{"Ready", "State", "Percent", "Restored-Version", "Age", "Reason"},
		},
	}
	crds := definitions(t)
	require.ElementsMatch(t, slices.Collect(maps.Keys(tests)), slices.Collect(maps.Keys(crds)))
	for kind, tt := range tests {
		t.Run(kind, func(t *testing.T) {
			crd, version := crds[kind], crds[kind].Spec.Versions[0]
			require.Equal(t, tt.group.Group, crd.Spec.Group)
			require.Equal(t, tt.group.Version, version.Name)
			require.Equal(t, apiextensionsv1.NamespaceScoped, crd.Spec.Scope)
			require.Equal(t, tt.plural, crd.Spec.Names.Plural)
			require.Equal(t, []string{tt.short}, crd.Spec.Names.ShortNames)
			require.Equal(t, []string{"holdfast"}, crd.Spec.Names.Categories)
			require.NotEmpty(t, version.SelectableFields)
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

// marker matches text for generators or developers, which does not help a reader of a description.
var marker = regexp.MustCompile(`\+(optional|required|listType|listMapKey|kubebuilder|genclient)|TODO|FIXME|XXX`)

// units are those that a field's name implies.
var units = map[string]*regexp.Regexp{
	"in seconds":                 regexp.MustCompile(`Seconds$`),
	"in bytes":                   regexp.MustCompile(`[bB]ytes`),
	"in percent":                 regexp.MustCompile(`percent`),
	"hours, minutes and seconds": regexp.MustCompile(`(maxRetention|minRestorable|jitter|startingDeadline|recoveryPoint)$`),
}

func TestEveryFieldIsDescribed(t *testing.T) {
	for kind, crd := range definitions(t) {
		for _, part := range []string{"spec", "status"} {
			walk(part, rootOf(crd).Properties[part], func(path string, s schema) {
				require.NotRegexp(t, marker, s.Description, "%s %s", kind, path)
				if strings.HasSuffix(path, "[]") {
					return
				}
				require.NotEmpty(t, s.Description, "%s %s", kind, path)
				name := path[strings.LastIndex(path, ".")+1:]
				for unit, has := range units {
					if has.MatchString(name) {
						require.Contains(t, strings.Join(strings.Fields(s.Description), " "), unit, "%s %s does not name its unit", kind, path)
					}
				}
			})
		}
	}
}

// A description names what the API server sets, allows and refuses: values, defaults and limits. The descriptions of conditions
// are Kubernetes' own. The default of a status is for tools, see observedGeneration.
func TestDescriptionsNameValuesDefaultsAndLimits(t *testing.T) {
	checked := 0
	for kind, crd := range definitions(t) {
		for _, part := range []string{"spec", "status"} {
			walk(part, rootOf(crd).Properties[part], func(path string, s schema) {
				if path == "status" || strings.Contains(path, "conditions[]") || strings.HasSuffix(path, "[]") {
					return
				}
				for what, value := range required(s) {
					require.Contains(t, strings.Join(strings.Fields(s.Description), " "), value, "%s %s does not name its %s", kind, path, what)
					checked++
				}
			})
		}
	}
	require.Greater(t, checked, 50)
}

// required returns what a description has to name, by kind.
func required(s schema) map[string]string {
	wanted := map[string]string{}
	for i, value := range s.Enum {
		wanted["value "+strconv.Itoa(i)] = strings.Trim(string(value.Raw), `"`)
	}
	if s.Default != nil && string(s.Default.Raw) != "{}" {
		wanted["default"] = strings.Trim(string(s.Default.Raw), `"`)
	}
	if s.Minimum != nil {
		wanted["minimum"] = strconv.FormatInt(int64(*s.Minimum), 10)
	}
	if s.Maximum != nil {
		wanted["maximum"] = strconv.FormatInt(int64(*s.Maximum), 10)
	}
	if s.MaxLength != nil {
		wanted["longest"] = strconv.FormatInt(*s.MaxLength, 10) + " characters"
	}
	for _, most := range []*int64{s.MaxItems, s.MaxProperties} {
		if most != nil {
			wanted["most"] = "At most " + strconv.FormatInt(*most, 10)
		}
	}
	return wanted
}
