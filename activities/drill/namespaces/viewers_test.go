package namespaces_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"holdfast.dev/holdfast/workflows/contract"
)

func TestTenantsLookOnlyIfThePolicySaysSo(t *testing.T) {
	binding := func(namespace, name, kind, role string, users ...string) *rbacv1.RoleBinding {
		made := &rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: kind, Name: role},
		}
		for _, user := range users {
			made.Subjects = append(made.Subjects, rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user})
		}
		return made
	}
	for title, allowed := range map[string]bool{"allowed": true, "not allowed": false} {
		t.Run(title, func(t *testing.T) {
			a, c := world(t,
				binding("shop", "team", "ClusterRole", "edit", "alice", "bob"), binding("shop", "again", "ClusterRole", "view", "alice"),
				binding("shop", "all", "ClusterRole", "view", "system:authenticated"),
				binding("shop", "other-role", "ClusterRole", "cluster-admin", "carol"), binding("shop", "own-role", "Role", "edit", "dave"),
				binding("crew", "team", "ClusterRole", "admin", "erin"))
			in := wanted("u-1")
			in.TenantsMayLook = allowed
			_, err := perform(t, a, contract.PrepareDrillNamespace.Name, in)
			require.NoError(t, err)
			var made rbacv1.RoleBindingList
			require.NoError(t, c.List(t.Context(), &made, client.InNamespace(in.Name)))
			if !allowed {
				assert.Empty(t, made.Items)
				return
			}
			require.Len(t, made.Items, 1)
			assert.Equal(t, "view", made.Items[0].RoleRef.Name)
			var users []string
			for _, subject := range made.Items[0].Subjects {
				users = append(users, subject.Name)
			}
			assert.ElementsMatch(t, []string{"alice", "bob"}, users)
		})
	}
}
