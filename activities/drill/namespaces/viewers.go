package namespaces

import (
	"context"
	"fmt"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	holdfastv1alpha1 "holdfast.dev/holdfast/k8s/api/holdfast/v1alpha1"
	"holdfast.dev/holdfast/workflows/contract"
)

const (
	roleKind = "ClusterRole"
	roleView = "view"
)

// tenantRoles are the ClusterRoles that let somebody see a namespace.
var tenantRoles = []string{"admin", "edit", roleView}

// everybody: a name of Kubernetes' own, such as group system:authenticated. ValidatingAdmissionPolicy holdfast-drills refuses
// these, so that a stolen token opens no namespace of a drill to the whole cluster.
func everybody(subject rbacv1.Subject) bool {
	return subject.Kind != rbacv1.ServiceAccountKind && strings.HasPrefix(subject.Name, "system:")
}

// bindViewers lets those who may see the tenant's namespace see the drill's, without its Secrets.
func (a *Activities) bindViewers(ctx context.Context, in contract.DrillNamespace) error {
	var bindings rbacv1.RoleBindingList
	if err := a.Client.List(ctx, &bindings, client.InNamespace(in.Ref.Namespace)); err != nil {
		return fmt.Errorf("list RoleBindings in %s: %w", in.Ref.Namespace, err)
	}
	var subjects []rbacv1.Subject
	for i := range bindings.Items {
		role := bindings.Items[i].RoleRef
		if role.Kind != roleKind || !slices.Contains(tenantRoles, role.Name) {
			continue
		}
		for _, subject := range bindings.Items[i].Subjects {
			if !everybody(subject) && !slices.Contains(subjects, subject) {
				subjects = append(subjects, subject)
			}
		}
	}
	if len(subjects) == 0 {
		return nil
	}
	return a.create(ctx, &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: in.Name, Name: limitsName, Labels: map[string]string{holdfastv1alpha1.LabelDrill: in.Ref.UID},
		},
		RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: roleKind, Name: roleView},
		Subjects: subjects,
	})
}
