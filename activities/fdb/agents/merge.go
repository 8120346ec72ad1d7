package agents

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	kjson "sigs.k8s.io/json"

	fdbv1alpha1 "holdfast.dev/holdfast/k8s/api/fdb/v1alpha1"
)

// maxUnknown is how many mistakes one message lists.
const maxUnknown = 3

// PodTemplate is our template with the user's merged into it.
//
// The user's spec.podTemplateSpec is merged into our pod template as kubectl would merge it: lists of containers, volumes and
// environment variables by name; in all else the user's value wins. Three things are replaced as a whole: a volume or variable
// with a name of ours, so that it may be of another kind; the settings of a resource, so that no request of ours is above a limit
// of the user's; the pod's securityContext. An image without a tag gets the cluster's version.
//
// Our pods run as user and group 4059, which is "fdb" in the official images. Where the platform chooses users (OpenShift), set
// the pod's securityContext to {}.
//
// A *TemplateError refuses a change of what makes the pods this backup's agents: the label, both containers, the cluster file and
// how it gets there, and the credentials. FDB_BLOB_CREDENTIALS may name further files, because agents also work for the cluster's
// other backups. They come after ours: FoundationDB reads an account from the first file that has it, so this backup uses its own
// accounts.
//
// Other pods of the backup are made from it, too: they run with the same image, rights, secrets and node constraints. resources
// are used for container "foundationdb" where the user sets none; nil are those of an agent.
func PodTemplate(
	object *fdbv1alpha1.FoundationDBBackup, version string, resources *corev1.ResourceRequirements,
) (*corev1.PodTemplateSpec, error) {
	if !versionFormat.MatchString(version) {
		return nil, fmt.Errorf("%.80q is not a version of FoundationDB, such as 7.3.63", version)
	}
	ours, err := base(object, version)
	if err != nil {
		return nil, err
	}
	if resources != nil {
		Container(ours.Spec.Containers, MainContainer).Resources = *resources
	}
	raw := rawTemplate(object)
	if raw == nil {
		return ours, nil
	}
	theirs, err := decode(raw)
	if err != nil {
		return nil, err
	}
	merged, err := merge(ours, theirs, raw)
	if err != nil {
		return nil, err
	}
	if err := keepOurs(ours, merged); err != nil {
		return nil, err
	}
	arrange(merged, theirs)
	completeImages(merged, version)
	return merged, nil
}

// rawTemplate is nil if the user gives none.
func rawTemplate(object *fdbv1alpha1.FoundationDBBackup) []byte {
	if object.Spec.PodTemplateSpec == nil {
		return nil
	}
	raw := bytes.TrimSpace(object.Spec.PodTemplateSpec.Raw)
	if len(raw) == 0 || string(raw) == "null" {
		return nil
	}
	return raw
}

// decode refuses fields that Kubernetes would drop silently.
func decode(raw []byte) (*corev1.PodTemplateSpec, error) {
	template := &corev1.PodTemplateSpec{}
	mistakes, err := kjson.UnmarshalStrict(raw, template)
	if err != nil {
		return nil, refused("is not a pod template: %v", err)
	}
	if len(mistakes) > 0 {
		var words []string
		for _, mistake := range mistakes[:min(len(mistakes), maxUnknown)] {
			words = append(words, mistake.Error())
		}
		return nil, refused("is not a pod template: %s", strings.Join(words, ", "))
	}
	metadata := template.ObjectMeta
	metadata.Labels, metadata.Annotations = nil, nil
	if !reflect.DeepEqual(metadata, metav1.ObjectMeta{}) {
		return nil, refused("may have only labels and annotations in its metadata: pods are named by their Deployment")
	}
	return template, nil
}

// merge gives the user's value precedence. Where a merge would give something that Kubernetes refuses, the user's is used as a
// whole: a volume or variable of two kinds, a request above its limit. So is the pod's security context.
func merge(ours, theirs *corev1.PodTemplateSpec, raw []byte) (*corev1.PodTemplateSpec, error) {
	yielding := ours.DeepCopy()
	yielding.Spec.Volumes = slices.DeleteFunc(yielding.Spec.Volumes, func(v corev1.Volume) bool {
		return slices.ContainsFunc(theirs.Spec.Volumes, func(w corev1.Volume) bool { return v.Name == w.Name })
	})
	if theirs.Spec.SecurityContext != nil { // the only way to remove users and groups: kubectl apply drops null
		yielding.Spec.SecurityContext = nil
	}
	yieldContainers(yielding.Spec.Containers, theirs.Spec.Containers)
	yieldContainers(yielding.Spec.InitContainers, theirs.Spec.InitContainers)
	content, err := json.Marshal(yielding)
	if err != nil {
		return nil, fmt.Errorf("write the agents' pod template: %w", err)
	}
	content, err = strategicpatch.StrategicMergePatch(content, raw, &corev1.PodTemplateSpec{})
	if err != nil {
		// The error quotes the element, which may hold anything.
		return nil, refused("cannot be merged: each of its containers, variables and volumes must have a name, each port " +
			"a containerPort, each mount a mountPath")
	}
	merged := &corev1.PodTemplateSpec{}
	if err := json.Unmarshal(content, merged); err != nil {
		return nil, refused("cannot be merged: %v", err)
	}
	return merged, nil
}

func yieldContainers(ours, theirs []corev1.Container) {
	for i := range ours {
		container := Container(theirs, ours[i].Name)
		if container == nil {
			continue
		}
		ours[i].Env = slices.DeleteFunc(ours[i].Env, func(v corev1.EnvVar) bool { return variable(container.Env, v.Name) != nil })
		for _, list := range []corev1.ResourceList{container.Resources.Requests, container.Resources.Limits} {
			for name := range list {
				delete(ours[i].Resources.Requests, name)
				delete(ours[i].Resources.Limits, name)
			}
		}
	}
}

// arrange puts our elements first again, after merging has put the user's first: kubectl uses the first container if none is
// named, and a variable may refer only to earlier ones, as the user's may to ours.
func arrange(merged, theirs *corev1.PodTemplateSpec) {
	slices.SortStableFunc(merged.Spec.Containers, func(a, b corev1.Container) int {
		return order(a.Name != MainContainer, b.Name != MainContainer)
	})
	main, named := &merged.Spec.Containers[0], Container(theirs.Spec.Containers, MainContainer)
	if named == nil {
		return
	}
	slices.SortStableFunc(main.Env, func(a, b corev1.EnvVar) int {
		return order(variable(named.Env, a.Name) != nil, variable(named.Env, b.Name) != nil)
	})
}

// order sorts elements that come last after those that do not.
func order(aLast, bLast bool) int {
	switch {
	case aLast == bLast:
		return 0
	case bLast:
		return -1
	}
	return 1
}

// completeImages gives our containers the cluster's version where the user names an image without a tag.
func completeImages(template *corev1.PodTemplateSpec, version string) {
	if main := Container(template.Spec.Containers, MainContainer); main != nil {
		main.Image = tagged(main.Image, version)
	}
	if initial := Container(template.Spec.InitContainers, InitContainer); initial != nil {
		initial.Image = tagged(initial.Image, version+initTagSuffix)
	}
}

// tagged adds a tag to an image that has neither tag nor digest. A colon before the last slash belongs to a registry's port.
func tagged(image, tag string) string {
	if image == "" || strings.ContainsAny(image[strings.LastIndexByte(image, '/')+1:], ":@") {
		return image
	}
	return image + ":" + tag
}

// Container returns the container of that name; nil if there is none.
func Container(containers []corev1.Container, name string) *corev1.Container {
	i := slices.IndexFunc(containers, func(c corev1.Container) bool { return c.Name == name })
	if i < 0 {
		return nil
	}
	return &containers[i]
}
