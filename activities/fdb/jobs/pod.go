package jobs

import (
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"holdfast.dev/holdfast/activities/fdb/agents"
	fdbv1alpha1 "holdfast.dev/holdfast/k8s/api/fdb/v1alpha1"
	"holdfast.dev/holdfast/workflows/contract"
	"holdfast.dev/holdfast/workflows/fdb/expiry"
)

//go:embed script.sh
var script string

const (
	// maxPodName: a pod's name is its host name, too.
	maxPodName = 63
	// GraceSeconds is enough for a tool to end: killing it does no harm.
	GraceSeconds int64 = 30
	// timeFormat is the tools' format of a time, in UTC.
	timeFormat = "2006/01/02.15:04:05-0700"

	envResult   = "HOLDFAST_RESULT"
	envDescribe = "HOLDFAST_DESCRIBE_SECONDS"
)

// Name returns the name of a turn's pod. It is always the same, so that the pod is never created twice.
func Name(ref contract.ObjectRef, turn int64, number int) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s/%d/%d", ref.UID, turn, number))
	suffix := "-expiry-" + hex.EncodeToString(sum[:5])
	cut := ref.Name[:min(len(ref.Name), maxPodName-len(suffix))]
	return strings.TrimRight(cut, "-.") + suffix
}

// NameOf returns the name of a step's pod.
func NameOf(step contract.FDBPodStep) string {
	if step.Number == 0 {
		return step.Name
	}
	return Name(step.Ref, step.Turn, step.Number)
}

// Ours reports whether a pod was made for the object.
func Ours(pod *corev1.Pod, ref contract.ObjectRef) bool {
	owner := metav1.GetControllerOf(pod)
	_, labelled := pod.Labels[fdbv1alpha1.LabelExpiry]
	return labelled && owner != nil && ref.UID != "" && string(owner.UID) == ref.UID
}

// deadlineMargin is how much longer than its turn a pod may live: the turn deletes it at its limit, and Kubernetes ends it if no
// worker runs.
const deadlineMargin = 10 * time.Minute

// Pod returns the pod of a step for a cluster of this version; its turn lets it run for limit. A *agents.TemplateError says that
// the user's template cannot be used.
//
// The pod is made from the agents' template, with the user's merged into it: image, secrets, TLS, service account and nodes are
// those of the agents. It runs one container, because sidecars would never end, and has no label of the agents. A pod that
// deletes needs no FoundationDB cluster.
func Pod(
	object *fdbv1alpha1.FoundationDBBackup, version string, step contract.FDBPodStep, limit time.Duration,
) (*corev1.Pod, error) {
	args, err := arguments(step)
	if err != nil {
		return nil, err
	}
	template, err := agents.PodTemplate(object, version, new(resources()))
	if err != nil {
		return nil, err
	}
	spec := template.Spec
	if err := shape(&spec, args, limit); err != nil {
		return nil, err
	}
	if step.Expire == nil {
		withoutCluster(&spec)
	}
	labels := maps.Clone(template.Labels)
	delete(labels, fdbv1alpha1.LabelBackup) // the agents' Deployment finds its pods by it
	maps.Copy(labels, map[string]string{
		fdbv1alpha1.LabelExpiry: object.Name,
		fdbv1alpha1.LabelTurn:   strconv.FormatInt(step.Turn, 10),
		fdbv1alpha1.LabelJob:    string(step.Job),

		velerov1.ExcludeFromBackupLabel: "true", // whatever the user's template says
	})
	return &corev1.Pod{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: metav1.ObjectMeta{
			Name: NameOf(step), Namespace: object.Namespace, Labels: labels, Annotations: template.Annotations,
			OwnerReferences: []metav1.OwnerReference{agents.OwnerReference(object)},
		},
		Spec: spec,
	}, nil
}

// arguments returns those of the script. Kubernetes turns two dollar signs into one.
func arguments(step contract.FDBPodStep) ([]string, error) {
	var args []string
	switch {
	case len(step.Delete) > expiry.MaxDelete:
		return nil, fmt.Errorf("a pod deletes %d containers at most", expiry.MaxDelete)
	case step.Expire != nil && len(step.Delete) == 0:
		args = []string{string(contract.FDBJobExpire), step.Expire.URL, timestamp(step.Expire.Before)}
		if step.Expire.RestorableAfter != 0 {
			args = append(args, timestamp(step.Expire.RestorableAfter))
		}
	case step.Expire == nil && len(step.Delete) > 0:
		args = []string{string(contract.FDBJobDelete)}
		for _, place := range step.Delete {
			args = append(args, place.URL)
		}
	default:
		return nil, errors.New("a pod either expires a container or deletes some")
	}
	for i, argument := range args {
		args[i] = strings.ReplaceAll(argument, "$", "$$")
	}
	return args, nil
}

// argumentsOf returns the arguments with which we made a pod; nil if we did not make it.
func argumentsOf(pod *corev1.Pod) []string {
	main := agents.Container(pod.Spec.Containers, agents.MainContainer)
	if main == nil || len(main.Args) < 2 {
		return nil
	}
	args := slices.Clone(main.Args)
	for i, argument := range args {
		args[i] = strings.ReplaceAll(argument, "$$", "$")
	}
	return args
}

func timestamp(seconds int64) string { return time.Unix(seconds, 0).UTC().Format(timeFormat) }

// resources returns what a pod gets unless the user's template says otherwise: describe and expire keep a list of the container's
// files in memory.
func resources() corev1.ResourceRequirements {
	return corev1.ResourceRequirements{
		Requests: corev1.ResourceList{
			corev1.ResourceCPU: resource.MustParse("100m"), corev1.ResourceMemory: resource.MustParse("512Mi"),
		},
		Limits: corev1.ResourceList{
			corev1.ResourceCPU: resource.MustParse("1"), corev1.ResourceMemory: resource.MustParse("2Gi"),
		},
	}
}

// shape turns the agents' pod, which runs for ever, into one that ends.
func shape(spec *corev1.PodSpec, args []string, limit time.Duration) error {
	main := agents.Container(spec.Containers, agents.MainContainer)
	if main == nil {
		return fmt.Errorf("the agents' template has no container %s", agents.MainContainer)
	}
	main.Command, main.Args = []string{"/bin/bash", "-c", script, "holdfast"}, args
	main.LivenessProbe, main.ReadinessProbe, main.StartupProbe, main.Lifecycle = nil, nil, nil, nil
	main.Ports, main.RestartPolicy, main.WorkingDir = nil, nil, ""
	main.Stdin, main.StdinOnce, main.TTY = false, false, false
	main.TerminationMessagePath = corev1.TerminationMessagePathDefault
	main.TerminationMessagePolicy = corev1.TerminationMessageReadFile
	for _, v := range []corev1.EnvVar{
		{Name: envResult, Value: corev1.TerminationMessagePathDefault},
		{Name: envDescribe, Value: strconv.Itoa(int(max(limit/3, leastDescribe).Seconds()))},
		{Name: "TMPDIR", Value: agents.ConfDir}, // writable whatever the container's own file system is
		{Name: "TZ", Value: "UTC"},
	} {
		main.Env = append(slices.DeleteFunc(main.Env, func(w corev1.EnvVar) bool { return w.Name == v.Name }), v)
	}
	spec.Containers = []corev1.Container{*main}
	spec.RestartPolicy = corev1.RestartPolicyNever
	spec.ActiveDeadlineSeconds = new(int64((limit + deadlineMargin).Seconds()))
	spec.TerminationGracePeriodSeconds = new(GraceSeconds)
	// A spread of agents over nodes would keep this pod from every node that has one.
	spec.TopologySpreadConstraints = nil
	if spec.Affinity != nil {
		spec.Affinity.PodAntiAffinity = nil
	}
	return nil
}

// withoutCluster removes what needs a FoundationDB cluster that exists.
func withoutCluster(spec *corev1.PodSpec) {
	main := agents.Container(spec.Containers, agents.MainContainer)
	main.Env = slices.DeleteFunc(main.Env, func(v corev1.EnvVar) bool { return v.Name == agents.EnvClusterFile })
	spec.InitContainers = slices.DeleteFunc(spec.InitContainers, func(c corev1.Container) bool {
		return c.Name == agents.InitContainer
	})
	spec.Volumes = slices.DeleteFunc(spec.Volumes, func(v corev1.Volume) bool { return v.Name == agents.VolumeConfigMap })
	for _, containers := range [][]corev1.Container{spec.Containers, spec.InitContainers} {
		for i := range containers {
			containers[i].VolumeMounts = slices.DeleteFunc(containers[i].VolumeMounts, func(m corev1.VolumeMount) bool {
				return m.Name == agents.VolumeConfigMap
			})
		}
	}
}
