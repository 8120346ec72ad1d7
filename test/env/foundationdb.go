package env

import (
	"context"
	"fmt"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	foundationdbv1beta2 "holdfast.dev/holdfast/k8s/api/foundationdb/v1beta2"
)

// InstallFDBClusters makes the FoundationDB operator's kind FoundationDBCluster known, without its schema.
func (e *Env) InstallFDBClusters(ctx context.Context) error {
	group := foundationdbv1beta2.GroupVersion.Group
	crd := &apiextensionsv1.CustomResourceDefinition{
		TypeMeta:   metav1.TypeMeta{APIVersion: "apiextensions.k8s.io/v1", Kind: "CustomResourceDefinition"},
		ObjectMeta: metav1.ObjectMeta{Name: "foundationdbclusters." + group},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: group, Scope: apiextensionsv1.NamespaceScoped,
			Names: apiextensionsv1.CustomResourceDefinitionNames{
				Plural: "foundationdbclusters", Singular: "foundationdbcluster", Kind: "FoundationDBCluster",
				ListKind: "FoundationDBClusterList", ShortNames: []string{"fdb"},
			},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
				Name: foundationdbv1beta2.GroupVersion.Version, Served: true, Storage: true,
				Subresources: &apiextensionsv1.CustomResourceSubresources{Status: &apiextensionsv1.CustomResourceSubresourceStatus{}},
				Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{
					Type: "object", XPreserveUnknownFields: ptr.To(true),
				}},
			}},
		},
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(crd)
	if err != nil {
		return fmt.Errorf("write down kind FoundationDBCluster: %w", err)
	}
	return e.applyKinds(ctx, []*unstructured.Unstructured{{Object: content}})
}

// CreateFDBCluster stands in for the FoundationDB operator: it makes a FoundationDBCluster of a database that runs a version, and
// the ConfigMap with its cluster file. It may be called again with another version or connection string.
func (e *Env) CreateFDBCluster(ctx context.Context, namespace, name, version, connectionString string) error {
	files := object("v1", "ConfigMap", namespace, name+"-config", map[string]any{
		"data": map[string]any{"cluster-file": connectionString, "running-version": version},
	})
	cluster := object(foundationdbv1beta2.GroupVersion.String(), "FoundationDBCluster", namespace, name, map[string]any{
		"spec": map[string]any{"version": version},
	})
	if err := e.Apply(ctx, files, cluster); err != nil {
		return fmt.Errorf("create FoundationDBCluster %s/%s: %w", namespace, name, err)
	}
	status := fmt.Sprintf(`{"status":{"connectionString":%q,"runningVersion":%q}}`, connectionString, version)
	patch := client.RawPatch(types.MergePatchType, []byte(status))
	if err := e.client.Status().Patch(ctx, cluster.DeepCopy(), patch); err != nil {
		return fmt.Errorf("write the status of FoundationDBCluster %s/%s: %w", namespace, name, err)
	}
	return nil
}
