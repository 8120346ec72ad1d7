package restore

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/restmapper"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"holdfast.dev/holdfast/k8s/policy"
	"holdfast.dev/holdfast/k8s/policy/restorespec"
)

// AllowlistSource returns what may be restored from tenants' storage locations at present. An error means that it could not be
// read, and that a retry may succeed.
type AllowlistSource interface {
	Allowlist(ctx context.Context, rules policy.RestoreFromTenantsLocations) (*restorespec.Allowlist, error)
}

// Allowlists reads from the API server what may be restored from tenants' storage locations.
type Allowlists struct {
	Client        client.Client
	Discovery     discovery.DiscoveryInterface
	OADPNamespace string
}

var _ AllowlistSource = (*Allowlists)(nil)

// admissionPolicy is the name of the ValidatingAdmissionPolicy, its binding and the service account whose rights it checks.
const admissionPolicy = "holdfast-restores"

// Allowlist implements AllowlistSource. Without the admission policy nothing is allowed: Velero matches the list with the
// folders of an archive, and an object may be of another kind than its folder says.
func (a *Allowlists) Allowlist(ctx context.Context, rules policy.RestoreFromTenantsLocations) (*restorespec.Allowlist, error) {
	allowlist := &restorespec.Allowlist{ClusterRole: rules.Role()}
	velero, err := a.velero(ctx)
	if err != nil {
		return nil, err
	}
	if allowlist.Problem, err = a.unprepared(ctx, rules, velero); err != nil || allowlist.Problem != "" {
		return allowlist, err
	}
	if allowlist.Problem, err = a.addDefaults(ctx, allowlist, velero); err != nil || allowlist.Problem != "" {
		return allowlist, err
	}
	role := &rbacv1.ClusterRole{}
	err = a.Client.Get(ctx, client.ObjectKey{Name: allowlist.ClusterRole}, role)
	if apierrors.IsNotFound(err) {
		allowlist.Problem = fmt.Sprintf("there is no ClusterRole %q, which the administrator's policy names", allowlist.ClusterRole)
		return allowlist, nil
	}
	if err != nil {
		return nil, fmt.Errorf("get ClusterRole %s: %w", allowlist.ClusterRole, err)
	}
	return allowlist, a.addServed(ctx, allowlist, role.Rules)
}

// unprepared says what an administrator has to do before restores from tenants' locations are possible; empty if nothing.
func (a *Allowlists) unprepared(
	ctx context.Context, rules policy.RestoreFromTenantsLocations, velero *appsv1.Deployment,
) (string, error) {
	inForce, err := a.policyInForce(ctx)
	if err != nil {
		return "", err
	}
	if !inForce {
		return fmt.Sprintf("ValidatingAdmissionPolicy %s is not in force; ask an administrator to install it "+
			"(deploy/rbac/restores.yaml)", admissionPolicy), nil
	}
	if !rules.AllowInformerCache && !withoutInformerCache(velero) {
		return "Velero runs with its informer cache, in which one file of a bucket can block all restores for ever; ask an " +
			"administrator to start it with --disable-informer-cache", nil
	}
	return "", nil
}

// policyInForce has the API server dry-run an object that the policy refuses. Nothing is stored, and changes of the policy or
// its binding are noticed.
func (a *Allowlists) policyInForce(ctx context.Context) (bool, error) {
	probe := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
		Namespace: a.OADPNamespace, GenerateName: admissionPolicy + "-probe-",
		Labels: map[string]string{velerov1.RestoreNameLabel: admissionPolicy},
		Annotations: map[string]string{
			restorespec.RestoredIntoAnnotation: "another-namespace",
			restorespec.RestoredByAnnotation:   a.OADPNamespace + "/" + admissionPolicy,
		},
	}}
	err := a.Client.Create(ctx, probe, client.DryRunAll)
	switch {
	case err == nil:
		return false, nil
	case apierrors.IsForbidden(err) && strings.Contains(err.Error(), "'"+admissionPolicy+"'"):
		return true, nil
	}
	return false, fmt.Errorf("try ValidatingAdmissionPolicy %s: %w", admissionPolicy, err)
}

// addServed adds the resources that the rules allow and the API server serves. If a group does not list its resources, a plural
// in the list may be another resource in that group.
func (a *Allowlists) addServed(ctx context.Context, allowlist *restorespec.Allowlist, rules []rbacv1.PolicyRule) error {
	cached := memory.NewMemCacheClient(a.Discovery) // one request for all that follows
	asking := discovery.ToDiscoveryInterfaceWithContext(cached)
	_, lists, err := asking.ServerGroupsAndResourcesWithContext(ctx)
	var failed *discovery.ErrGroupDiscoveryFailed
	switch {
	case errors.As(err, &failed):
		allowlist.Problem = "the API server does not say what it serves in " + strings.Join(groupVersions(failed), ", ")
		return nil
	case err != nil:
		return fmt.Errorf("discover the API server's resources: %w", err)
	}
	groups, err := restmapper.GetAPIGroupResourcesWithContext(ctx, asking)
	if err != nil {
		return fmt.Errorf("discover the API server's resources: %w", err)
	}
	allowlist.Names = restmapper.NewShortcutExpander(restmapper.NewDiscoveryRESTMapper(groups), cached, nil)
	served := servedIn(lists)
	allowlist.Resources, allowlist.Shadowed = restorespec.Allowed(rules, served)
	allowlist.Followed = restorespec.Followed(served)
	if len(allowlist.Resources) == 0 {
		allowlist.Problem = fmt.Sprintf("ClusterRole %q may create nothing in a namespace that such a restore brings",
			allowlist.ClusterRole)
	}
	return nil
}

func groupVersions(failed *discovery.ErrGroupDiscoveryFailed) []string {
	var named []string
	for version := range failed.Groups {
		named = append(named, version.String())
	}
	slices.Sort(named)
	return named
}

// servedIn combines the API server's lists of resources, group version by group version, the preferred ones first.
func servedIn(lists []*metav1.APIResourceList) []restorespec.Served {
	var served []restorespec.Served
	at := map[schema.GroupResource]int{}
	for _, list := range lists {
		version, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			continue // it cannot be requested
		}
		for _, resource := range list.APIResources {
			if strings.Contains(resource.Name, "/") {
				continue
			}
			name := version.WithResource(resource.Name).GroupResource()
			i, known := at[name]
			if !known {
				i, at[name] = len(served), len(served)
				served = append(served, restorespec.Served{
					GroupResource: name, Kind: resource.Kind, Namespaced: resource.Namespaced, Verbs: resource.Verbs,
				})
			}
			served[i].Versions = append(served[i].Versions, version.Version)
		}
	}
	return served
}
