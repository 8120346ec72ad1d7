package main

import (
	"context"
	"errors"
	"time"

	corev1 "k8s.io/api/core/v1"

	"holdfast.dev/holdfast/k8s"
	"holdfast.dev/holdfast/k8s/probe"
)

// +kubebuilder:rbac:groups="",resources=secrets,verbs=get

// Velero encrypts the repositories of all namespaces, in every bucket, with one password. Unless somebody has made the Secret
// before Velero's first start, it is the one in Velero's source (velero#1053, #5443).
const (
	repositorySecret  = "velero-repo-credentials"
	repositoryKey     = "repository-password"
	publishedPassword = "static-passw0rd"
)

var errPublishedPassword = errors.New("the volumes of all tenants are encrypted with the password in Velero's source code: " +
	"see docs/security.md, The password of all repositories")

// passwordCheck warns, and keeps nobody from being ready.
func (k *kube) passwordCheck(oadpNamespace string) probe.Check {
	return probe.Check{Name: "repository-password", Every: time.Hour, Advisory: true, Probe: func(ctx context.Context) error {
		secret := &corev1.Secret{}
		exists, err := k8s.Get(ctx, k.client, "Secret", oadpNamespace, repositorySecret, secret)
		if err == nil && exists && string(secret.Data[repositoryKey]) == publishedPassword {
			return errPublishedPassword
		}
		return nil // what cannot be read says nothing of the password; check kubernetes says why
	}}
}
