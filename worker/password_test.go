package main

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"holdfast.dev/holdfast/k8s"
)

func TestThePasswordThatEverybodyKnowsIsWarnedOf(t *testing.T) {
	secret := func(password string) *corev1.Secret {
		return &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: "openshift-adp", Name: repositorySecret},
			Data:       map[string][]byte{repositoryKey: []byte(password)},
		}
	}
	for title, test := range map[string]struct {
		there *corev1.Secret
		warns bool
	}{
		"Velero has made none yet": {secret("x"), false},
		"one of the operator's":    {secret("correct horse"), false},
		"the one in the source":    {secret(publishedPassword), true},
	} {
		cluster := fake.NewClientBuilder().WithScheme(k8s.Scheme())
		if title != "Velero has made none yet" {
			cluster = cluster.WithObjects(test.there)
		}
		check := (&kube{client: cluster.Build()}).passwordCheck("openshift-adp")
		err := check.Probe(t.Context())
		assert.Equal(t, test.warns, err != nil, title)
		if err != nil {
			require.NotContains(t, err.Error(), publishedPassword)
		}
		assert.True(t, check.Advisory, "the tenants' backups go on")
	}
}
