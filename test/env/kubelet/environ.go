package kubelet

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// environment is the environment of a container, in order. Of a name that is there twice the last one counts.
type environment []variable

type variable struct {
	name, value string
	literal     bool // from a Secret or the Pod itself: no mount path in it is replaced
}

func (e environment) lookUp(name string) (string, bool) {
	for _, v := range slices.Backward(e) {
		if v.name == name {
			return v.value, true
		}
	}
	return "", false
}

// strings is the environment as a process gets it.
func (e environment) strings(mounts mounts) []string {
	out := make([]string, 0, len(e))
	for _, v := range e {
		value := v.value
		if !v.literal {
			value = mounts.replace(value)
		}
		out = append(out, v.name+"="+value)
	}
	return out
}

func (e environment) values() map[string]string {
	values := map[string]string{}
	for _, v := range e {
		values[v.name] = v.value
	}
	return values
}

// expand puts values for $(NAME); $$ stands for $, and a name that is not known stays as it is.
func (e environment) expand(text string) string {
	var out strings.Builder
	for i := 0; i < len(text); i++ {
		if text[i] != '$' || i+1 == len(text) {
			out.WriteByte(text[i])
			continue
		}
		end := strings.IndexByte(text[i:], ')')
		switch {
		case text[i+1] == '$':
			out.WriteByte('$')
			i++
		case text[i+1] == '(' && end > 0:
			reference := text[i : i+end+1]
			value, ok := e.lookUp(reference[2 : len(reference)-1])
			if !ok {
				value = reference
			}
			out.WriteString(value)
			i += end
		default:
			out.WriteByte('$')
		}
	}
	return out.String()
}

func (e environment) expandAll(texts []string) []string {
	out := make([]string, len(texts))
	for i, text := range texts {
		out[i] = e.expand(text)
	}
	return out
}

// environment makes a container's environment: the image's, then its own, and a PATH when neither has one.
func (k *Kubelet) environment(
	ctx context.Context, pod *corev1.Pod, container *corev1.Container, image Image,
) (environment, error) {
	var env environment
	for name, value := range image.Env {
		env = append(env, variable{name: name, value: value})
	}
	slices.SortFunc(env, func(a, b variable) int { return cmp.Compare(a.name, b.name) })
	for _, source := range container.EnvFrom {
		more, err := k.environmentFrom(ctx, pod.Namespace, source)
		if err != nil {
			return nil, err
		}
		env = append(env, more...)
	}
	for _, own := range container.Env {
		v := variable{name: own.Name, value: env.expand(own.Value)}
		if own.ValueFrom != nil {
			found, err := k.valueFrom(ctx, pod, own.ValueFrom, &v)
			if err != nil {
				return nil, fmt.Errorf("environment variable %s: %w", own.Name, err)
			}
			if !found {
				continue
			}
		}
		env = append(env, v)
	}
	if _, ok := env.lookUp("PATH"); !ok {
		path := "/usr/bin:/bin"
		if image.Bin != "" {
			path = image.Bin + ":" + path
		}
		env = append(env, variable{name: "PATH", value: path, literal: true})
	}
	return env, nil
}

func (k *Kubelet) environmentFrom(ctx context.Context, namespace string, from corev1.EnvFromSource) (environment, error) {
	var src source
	switch {
	case from.ConfigMapRef != nil:
		src = source{kind: kindConfigMap, name: from.ConfigMapRef.Name, optional: isTrue(from.ConfigMapRef.Optional)}
	case from.SecretRef != nil:
		src = source{kind: kindSecret, name: from.SecretRef.Name, optional: isTrue(from.SecretRef.Optional)}
	default:
		return nil, nil
	}
	data, err := k.read(ctx, namespace, src)
	if err != nil {
		return nil, err
	}
	var env environment
	for key, value := range data {
		env = append(env, variable{name: from.Prefix + key, value: string(value), literal: src.kind == kindSecret})
	}
	slices.SortFunc(env, func(a, b variable) int { return cmp.Compare(a.name, b.name) })
	return env, nil
}

// valueFrom sets the value of a variable that is taken from elsewhere; false means that it is optional and not there.
func (k *Kubelet) valueFrom(ctx context.Context, pod *corev1.Pod, from *corev1.EnvVarSource, v *variable) (bool, error) {
	var src source
	var key string
	switch {
	case from.FieldRef != nil:
		value, err := field(pod, from.FieldRef.FieldPath)
		v.value, v.literal = value, true
		return err == nil, err
	case from.ConfigMapKeyRef != nil:
		ref := from.ConfigMapKeyRef
		src, key = source{kind: kindConfigMap, name: ref.Name, optional: isTrue(ref.Optional)}, ref.Key
	case from.SecretKeyRef != nil:
		ref := from.SecretKeyRef
		src, key = source{kind: kindSecret, name: ref.Name, optional: isTrue(ref.Optional)}, ref.Key
		v.literal = true
	default:
		return false, fmt.Errorf("the kubelet stand-in knows only fieldRef, configMapKeyRef and secretKeyRef")
	}
	data, err := k.read(ctx, pod.Namespace, src)
	if err != nil {
		return false, err
	}
	value, ok := data[key]
	if !ok && !src.optional {
		return false, fmt.Errorf("couldn't find key %s in %s %s/%s", key, src.kind, pod.Namespace, src.name)
	}
	v.value = string(value)
	return ok, nil
}

func field(pod *corev1.Pod, path string) (string, error) {
	switch path {
	case "metadata.name":
		return pod.Name, nil
	case "metadata.namespace":
		return pod.Namespace, nil
	case "metadata.uid":
		return string(pod.UID), nil
	case "spec.nodeName":
		return pod.Spec.NodeName, nil
	case "spec.serviceAccountName":
		return pod.Spec.ServiceAccountName, nil
	case "status.podIP", "status.podIPs", "status.hostIP", "status.hostIPs":
		return loopback, nil
	}
	maps := map[string]map[string]string{"metadata.labels": pod.Labels, "metadata.annotations": pod.Annotations}
	for prefix, values := range maps {
		if key, ok := strings.CutPrefix(path, prefix+"['"); ok && strings.HasSuffix(key, "']") {
			return values[strings.TrimSuffix(key, "']")], nil
		}
	}
	return "", fmt.Errorf("the kubelet stand-in does not know the field %s", path)
}

func isTrue(b *bool) bool { return b != nil && *b }
