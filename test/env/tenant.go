package env

import (
	"context"
	"fmt"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Groups of the kinds that tenants use.
const (
	tenantAPIGroup = "oadp.openshift.io"
	fdbAPIGroup    = "fdb.holdfast.dev"
)

// CreateTenant makes a namespace in which user has the ClusterRole "edit", to which the roles of deploy/rbac add Holdfast's
// kinds. It returns when these rights are in force.
func (e *Env) CreateTenant(ctx context.Context, namespace, user string) error {
	known, ok := e.user(user)
	if !ok {
		return fmt.Errorf("create tenant %s: no user %q in this environment", namespace, user)
	}
	binding := object("rbac.authorization.k8s.io/v1", "RoleBinding", namespace, user+"-edit", map[string]any{
		"roleRef":  map[string]any{"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "edit"},
		"subjects": []any{map[string]any{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": known.name}},
	})
	if err := e.Apply(ctx, namespaceObject(namespace)); err != nil {
		return fmt.Errorf("create tenant %s: %w", namespace, err)
	}
	if err := e.Apply(ctx, binding); err != nil {
		return fmt.Errorf("create tenant %s: %w", namespace, err)
	}
	needed := []authorizationv1.ResourceAttributes{{Namespace: namespace, Verb: "create", Resource: "configmaps"}}
	if e.rolesInstalled {
		needed = append(needed, authorizationv1.ResourceAttributes{
			Namespace: namespace, Verb: "create", Group: tenantAPIGroup, Resource: "nonadminbackups",
		})
	}
	if e.rolesInstalled && e.options.FoundationDB {
		needed = append(needed, authorizationv1.ResourceAttributes{
			Namespace: namespace, Verb: "create", Group: fdbAPIGroup, Resource: "foundationdbbackups",
		})
	}
	for _, right := range needed {
		if err := e.awaitRight(ctx, known, right); err != nil {
			return fmt.Errorf("create tenant %s: %w", namespace, err)
		}
	}
	return nil
}

// awaitRight waits until the API server grants the right: roles are aggregated and read some milliseconds after they are made.
func (e *Env) awaitRight(ctx context.Context, u user, right authorizationv1.ResourceAttributes) error {
	return poll(ctx, time.Minute, func() error {
		review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
			User: u.name, Groups: u.groups, ResourceAttributes: &right,
		}}
		if err := e.client.Create(ctx, review); err != nil {
			return err
		}
		if !review.Status.Allowed {
			return fmt.Errorf("user %s may not %s %s.%s in namespace %s: is there a role in deploy/rbac that aggregates to edit?",
				u.short, right.Verb, right.Resource, right.Group, right.Namespace)
		}
		return nil
	})
}

// Seed fills a namespace with count ConfigMaps, object-000 and so on, each with label app=seed and a line of data.
func (e *Env) Seed(ctx context.Context, namespace string, count int) error {
	objects := make([]*unstructured.Unstructured, 0, count)
	for i := range count {
		name := fmt.Sprintf("object-%03d", i)
		config := object("v1", "ConfigMap", namespace, name, map[string]any{
			"data": map[string]any{"line": "content of " + namespace + "/" + name},
		})
		config.SetLabels(map[string]string{"app": "seed"})
		objects = append(objects, config)
	}
	return e.Apply(ctx, objects...)
}

func namespaceObject(name string) *unstructured.Unstructured {
	return object("v1", "Namespace", "", name, nil)
}

// object builds an unstructured object from its head and the rest of its content.
func object(apiVersion, kind, namespace, name string, content map[string]any) *unstructured.Unstructured {
	o := &unstructured.Unstructured{Object: map[string]any{}}
	for key, value := range content {
		o.Object[key] = value
	}
	o.SetAPIVersion(apiVersion)
	o.SetKind(kind)
	o.SetNamespace(namespace)
	o.SetName(name)
	return o
}
