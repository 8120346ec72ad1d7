package main

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"holdfast.dev/holdfast/k8s"
)

func TestThePasswordThatEverybodyKnowsIsWarnedOf(t *testing.T) {
	secret := func(password string) []client.Object {
		return []client.Object{&corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: "openshift-adp", Name: repositorySecret},
			Data:       map[string][]byte{repositoryKey: []byte(password)},
		}}
	}
	for title, test := range map[string]struct {
		there []client.Object
		away  error
		warns bool
	}{
		"Velero has made none yet":       {},
		"one of the operator's":          {there: secret("correct horse")},
		"the one in the source":          {there: secret(publishedPassword), warns: true},
		"the API server does not answer": {there: secret(publishedPassword), away: errors.New("away")},
	} {
		cluster := fake.NewClientBuilder().WithScheme(k8s.Scheme()).WithObjects(test.there...).WithInterceptorFuncs(interceptor.Funcs{
			Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, into client.Object, options ...client.GetOption) error {
				if test.away != nil {
					return test.away
				}
				return c.Get(ctx, key, into, options...)
			},
		}).Build()
		check := (&kube{client: cluster}).passwordCheck("openshift-adp")
		err := check.Probe(t.Context())
		assert.Equal(t, test.warns, err != nil, title)
		if err != nil {
			require.NotContains(t, err.Error(), publishedPassword)
		}
		assert.True(t, check.Advisory, "the tenants' backups go on")
	}
}
