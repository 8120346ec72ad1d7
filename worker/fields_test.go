package main

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"reflect"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"
)

func TestFieldsThatOneSchemaLacksAreNamed(t *testing.T) {
	parse := func(text string) *fields {
		var parsed fields
		require.NoError(t, json.Unmarshal([]byte(text), &parsed))
		return &parsed
	}
	const newer = `{"properties": {"ttl": {}, "backupType": {}, "hooks": {"properties": {"resources": {"items": {"properties": {
		"name": {}, "when": {}}}}}}, "free": {"properties": {"any": {}}}}}`
	for title, test := range map[string]struct {
		known string
		want  []string
	}{
		"the same":     {newer, nil},
		"knows others": {`{"properties": {"ttl": {}, "own": {}}}`, []string{"spec.backupType", "spec.free", "spec.hooks"}},
		"deep inside": {
			`{"properties": {"ttl": {}, "backupType": {}, "free": {}, "hooks": {"properties": {"resources": {"items": {"properties": {
				"name": {}}}}}}}}`,
			[]string{"spec.hooks.resources[].when"},
		},
		"keeps all it is given": {`{}`, nil},
	} {
		t.Run(title, func(t *testing.T) { assert.Equal(t, test.want, missing("spec", parse(newer), parse(test.known))) })
	}
	assert.Empty(t, missing("spec", nil, parse(newer)), "Velero is not there")
	assert.Empty(t, missing("spec", parse(newer), nil), "our CRDs are not there")
}

// crdFields are the fields of the CRD of a kind of ours.
func crdFields(t *testing.T, file, spec string) *fields {
	t.Helper()
	content, err := os.ReadFile("../deploy/crds/oadp.openshift.io_" + file + ".yaml")
	require.NoError(t, err)
	var crd struct {
		Spec struct {
			Versions []struct {
				Schema struct {
					OpenAPIV3Schema *fields `json:"openAPIV3Schema"`
				} `json:"schema"`
			} `json:"versions"`
		} `json:"spec"`
	}
	require.NoError(t, yaml.Unmarshal(content, &crd))
	return crd.Spec.Versions[0].Schema.OpenAPIV3Schema.at("spec", spec)
}

// The CRDs are made from Velero's types: what reads both ways finds no difference.
func TestTheTypesHaveTheFieldsOfTheCRDs(t *testing.T) {
	for spec, file := range map[string]string{"backupSpec": "nonadminbackups", "restoreSpec": "nonadminrestores"} {
		crd, known := crdFields(t, file, spec), fieldsOf(reflect.TypeFor[velerov1.BackupSpec]())
		if spec == "restoreSpec" {
			known = fieldsOf(reflect.TypeFor[velerov1.RestoreSpec]())
		}
		assert.Greater(t, len(crd.Properties), 15)
		assert.Empty(t, missing(spec, crd, known))
		assert.Empty(t, missing(spec, known, crd))
	}
}

func TestTheOperatorIsToldWhichFieldsOfVelerosTenantsCannotUse(t *testing.T) {
	document := func(kinds map[string]*fields) []byte {
		schemas := map[string]*fields{}
		for kind, spec := range kinds {
			of := &fields{Properties: map[string]*fields{"spec": spec}}
			require.NoError(t, json.Unmarshal([]byte(`{"x-kubernetes-group-version-kind": [{"kind": "`+kind+`"}]}`), of))
			schemas["any."+kind] = of
		}
		content, err := json.Marshal(map[string]any{"components": map[string]any{"schemas": schemas}})
		require.NoError(t, err)
		return content
	}
	within := func(name string, spec *fields) *fields { return &fields{Properties: map[string]*fields{name: spec}} }
	backup, restore := crdFields(t, "nonadminbackups", "backupSpec"), crdFields(t, "nonadminrestores", "restoreSpec")
	newBackup, newRestore := crdFields(t, "nonadminbackups", "backupSpec"), crdFields(t, "nonadminrestores", "restoreSpec")
	newBackup.Properties["backupType"] = &fields{}
	newRestore.Properties["existingVolumeDataPolicy"] = &fields{}
	for title, test := range map[string]struct {
		velero, tenants map[string]*fields
		want            []string
	}{
		"Velero 1.18": {
			map[string]*fields{"Backup": backup, "Restore": restore},
			map[string]*fields{"NonAdminBackup": within("backupSpec", backup), "NonAdminRestore": within("restoreSpec", restore)},
			nil,
		},
		"a newer Velero": {
			map[string]*fields{"Backup": newBackup, "Restore": newRestore},
			map[string]*fields{"NonAdminBackup": within("backupSpec", backup), "NonAdminRestore": within("restoreSpec", restore)},
			[]string{"backupSpec.backupType, restoreSpec.existingVolumeDataPolicy:"},
		},
		"a newer OADP, whose CRDs know what Holdfast does not hand on": {
			map[string]*fields{"Backup": newBackup, "Restore": restore},
			map[string]*fields{"NonAdminBackup": within("backupSpec", newBackup), "NonAdminRestore": within("restoreSpec", restore)},
			[]string{"objects: backupSpec.backupType:"},
		},
		"no Velero yet": {},
	} {
		t.Run(title, func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				served := map[string]map[string]*fields{
					"/openapi/v3/apis/velero.io/v1": test.velero, "/openapi/v3/apis/oadp.openshift.io/v1alpha1": test.tenants,
				}[r.URL.Path]
				if served == nil {
					w.WriteHeader(http.StatusNotFound)
					return
				}
				_, _ = w.Write(document(served))
			}))
			defer server.Close()
			client, err := discovery.NewDiscoveryClientForConfig(&rest.Config{Host: server.URL})
			require.NoError(t, err)
			check := (&kube{discovery: client}).fieldsCheck()
			assert.True(t, check.Advisory, "backups go on")
			err = check.Probe(t.Context())
			assert.Equal(t, len(test.want) > 0, err != nil, "%v", err)
			for _, want := range test.want {
				assert.ErrorContains(t, err, want)
			}
		})
	}
}
