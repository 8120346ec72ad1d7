package restore

import (
	"context"
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"holdfast.dev/holdfast/k8s"
	"holdfast.dev/holdfast/k8s/policy/restorespec"
)

// veleroDeployment is the name that Velero itself looks up when it restores.
const veleroDeployment = "velero"

// velero reads Velero's Deployment: an empty one if there is none.
func (a *Allowlists) velero(ctx context.Context) (*appsv1.Deployment, error) {
	velero := &appsv1.Deployment{}
	err := a.Client.Get(ctx, client.ObjectKey{Namespace: a.OADPNamespace, Name: veleroDeployment}, velero)
	if client.IgnoreNotFound(err) != nil {
		return nil, fmt.Errorf("get Deployment %s/%s: %w", a.OADPNamespace, veleroDeployment, err)
	}
	return velero, nil
}

// argumentsOf are those of all containers.
func argumentsOf(velero *appsv1.Deployment) []string {
	var arguments []string
	for _, container := range velero.Spec.Template.Spec.Containers {
		arguments = slices.Concat(arguments, container.Command, container.Args)
	}
	return arguments
}

// withoutInformerCache: the last one counts if a flag is given twice.
func withoutInformerCache(velero *appsv1.Deployment) bool {
	off := false
	for _, arg := range argumentsOf(velero) {
		switch arg {
		case "--disable-informer-cache", "--disable-informer-cache=true":
			off = true
		case "--disable-informer-cache=false":
			off = false
		}
	}
	return off
}

// defaultModifierFlag names a ConfigMap whose rules Velero (1.19) applies to each restore without a modifier of its own.
const defaultModifierFlag = "--default-resource-modifier-configmap"

// defaultModifier is the value of defaultModifierFlag, empty if it is not set. The last one counts.
func defaultModifier(velero *appsv1.Deployment) string {
	name := ""
	arguments := argumentsOf(velero)
	for i, arg := range arguments {
		if value, set := strings.CutPrefix(arg, defaultModifierFlag+"="); set {
			name = value
		}
		if arg == defaultModifierFlag && i+1 < len(arguments) {
			name = arguments[i+1]
		}
	}
	return name
}

// addDefaults adds the administrator's default rules. If they cannot be read it says so: Velero would restore without them and
// write a warning to its log, but here ours would hide that from everybody.
func (a *Allowlists) addDefaults(
	ctx context.Context, allowlist *restorespec.Allowlist, velero *appsv1.Deployment,
) (problem string, err error) {
	name := defaultModifier(velero)
	if name == "" {
		return "", nil
	}
	modifier := &corev1.ConfigMap{}
	exists, err := k8s.Get(ctx, a.Client, "ConfigMap", a.OADPNamespace, name, modifier)
	switch {
	case err != nil:
		return "", err
	case !exists:
		return fmt.Sprintf("Velero's flag %s names a ConfigMap that does not exist; ask an administrator to create it or to remove "+
			"the flag", defaultModifierFlag), nil
	}
	if allowlist.Defaults, err = restorespec.ReadDefaults(modifier.Data); err != nil {
		return fmt.Sprintf("the ConfigMap that Velero's flag %s names is not a resource modifier: %v; ask an administrator to "+
			"correct it",
			defaultModifierFlag, err), nil
	}
	return "", nil
}
