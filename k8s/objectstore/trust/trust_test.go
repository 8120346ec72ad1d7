package trust_test

import (
	"crypto/x509"
	"encoding/pem"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"holdfast.dev/holdfast/k8s"
	"holdfast.dev/holdfast/k8s/objectstore/trust"
)

func TestALocationSaysWhomToTrust(t *testing.T) {
	server := httptest.NewTLSServer(nil)
	defer server.Close()
	authority := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "openshift-adp", Name: "ca"},
		Data:       map[string][]byte{"bundle": authority, "other": []byte("none")},
	}
	ref := func(name, key string) *corev1.SecretKeySelector {
		return &corev1.SecretKeySelector{LocalObjectReference: corev1.LocalObjectReference{Name: name}, Key: key}
	}
	for title, test := range map[string]struct {
		storage *velerov1.ObjectStorageLocation
		skip    string
		trusts  bool
		want    string
	}{
		"nothing":              {nil, "", false, ""},
		"a certificate":        {&velerov1.ObjectStorageLocation{CACert: authority}, "", true, ""},
		"a Secret":             {&velerov1.ObjectStorageLocation{CACertRef: ref("ca", "bundle")}, "", true, ""},
		"no certificate in it": {&velerov1.ObjectStorageLocation{CACertRef: ref("ca", "other")}, "", false, "holds none"},
		"no such key":          {&velerov1.ObjectStorageLocation{CACertRef: ref("ca", "x")}, "", false, `nothing under key "x"`},
		"no such Secret":       {&velerov1.ObjectStorageLocation{CACertRef: ref("x", "x")}, "", false, "there is no Secret openshift-adp/x"},
		"anybody":              {nil, "true", false, ""},
		"nobody knows":         {nil, "perhaps", false, "must be true or false"},
	} {
		t.Run(title, func(t *testing.T) {
			location := &velerov1.BackupStorageLocation{ObjectMeta: metav1.ObjectMeta{Namespace: "openshift-adp", Name: "l"}}
			location.Spec.ObjectStorage, location.Spec.Config = test.storage, map[string]string{"insecureSkipTLSVerify": test.skip}
			reader := fake.NewClientBuilder().WithScheme(k8s.Scheme()).WithObjects(secret).Build()
			got, err := trust.Of(t.Context(), reader, location)
			if test.want != "" {
				var unusable *trust.UnusableError
				require.ErrorAs(t, err, &unusable)
				require.ErrorContains(t, err, test.want)
				return
			}
			require.NoError(t, err)
			assert.Equal(t, test.skip == "true", got.InsecureSkipVerify)
			if test.trusts {
				_, err = server.Certificate().Verify(x509.VerifyOptions{Roots: got.RootCAs, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageAny}})
				require.NoError(t, err)
			} else {
				assert.Nil(t, got.RootCAs, "the system's")
			}
		})
	}
}
