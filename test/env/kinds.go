package env

import (
	"context"
	"fmt"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
)

// SchemalessKind is a kind of somebody else's, which takes whatever it is given.
type SchemalessKind struct {
	Group, Version, Kind, Plural string
	ClusterScoped                bool
}

// InstallKinds makes kinds known.
func (e *Env) InstallKinds(ctx context.Context, kinds ...SchemalessKind) error {
	var definitions []*unstructured.Unstructured
	for _, kind := range kinds {
		content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(kind.definition())
		if err != nil {
			return fmt.Errorf("write down kind %s: %w", kind.Kind, err)
		}
		definitions = append(definitions, &unstructured.Unstructured{Object: content})
	}
	return e.applyKinds(ctx, definitions)
}

func (k SchemalessKind) definition() *apiextensionsv1.CustomResourceDefinition {
	scope := apiextensionsv1.NamespaceScoped
	if k.ClusterScoped {
		scope = apiextensionsv1.ClusterScoped
	}
	return &apiextensionsv1.CustomResourceDefinition{
		TypeMeta: metav1.TypeMeta{APIVersion: "apiextensions.k8s.io/v1", Kind: "CustomResourceDefinition"},
		ObjectMeta: metav1.ObjectMeta{
			Name: k.Plural + "." + k.Group,
			// Without it the API server keeps the groups of others, such as that of CSI snapshots, for itself.
			Annotations: map[string]string{"api-approved.kubernetes.io": "unapproved, for a test"},
		},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: k.Group, Scope: scope,
			Names: apiextensionsv1.CustomResourceDefinitionNames{
				Plural: k.Plural, Singular: strings.ToLower(k.Kind), Kind: k.Kind, ListKind: k.Kind + "List",
			},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
				Name: k.Version, Served: true, Storage: true,
				Subresources: &apiextensionsv1.CustomResourceSubresources{Status: &apiextensionsv1.CustomResourceSubresourceStatus{}},
				Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{
					Type: "object", XPreserveUnknownFields: ptr.To(true),
				}},
			}},
		},
	}
}
