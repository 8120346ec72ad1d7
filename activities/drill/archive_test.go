package drill_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"holdfast.dev/holdfast/activities/digests"
	"holdfast.dev/holdfast/activities/fake"
	holdfastv1alpha1 "holdfast.dev/holdfast/k8s/api/holdfast/v1alpha1"
	"holdfast.dev/holdfast/workflows/contract"
)

func TestAnArchiveThatWasChangedIsFound(t *testing.T) {
	const secret, settings = "resources/secrets/namespaces/team/keys.json", "resources/configmaps/namespaces/team/a.json"
	for title, test := range map[string]struct {
		change            func(s *scene, files map[string]string)
		want, notVerified []string
	}{
		"nothing": {},
		"the same in another order": {change: func(_ *scene, files map[string]string) {
			files[secret] = `{"data": {"password": "b2xk"}, "metadata": {"name": "keys"}, "kind": "Secret"}`
		}},
		"a Secret": {
			change: func(_ *scene, files map[string]string) {
				files[secret] = `{"kind":"Secret","metadata":{"name":"keys"},"data":{"password":"bmV3"}}`
			},
			want: []string{"secrets/keys is not what was backed up: data.password differs"},
		},
		"a field is gone": {
			change: func(_ *scene, files map[string]string) {
				files[secret] = `{"kind":"Secret","metadata":{"name":"keys"}}`
			},
			want: []string{"secrets/keys is not what was backed up"},
		},
		"the copy that another Velero reads": {
			change: func(_ *scene, files map[string]string) {
				files["resources/configmaps/v1-preferredversion/namespaces/team/a.json"] = `{"kind":"ConfigMap","metadata":{"name":"a"},"data":{"size":"2"}}`
			},
			want: []string{"configmaps/a is not what was backed up: data.size differs"},
		},
		"an object is cut out": {
			change: func(_ *scene, files map[string]string) { delete(files, settings) },
			want:   []string{"configmaps/a was removed from the backup's archive later"},
		},
		"an object is put in": {
			change: func(_ *scene, files map[string]string) {
				files["resources/configmaps/namespaces/team/b.json"] = `{"kind":"ConfigMap"}`
			},
			want: []string{"configmaps/b was added to the backup's archive later"},
		},
		"another spelling of a path": {
			change: func(_ *scene, files map[string]string) {
				files["resources/secrets/zz/../namespaces/team/keys.json"] = `{"kind":"Secret","data":{"password":"bmV3"}}`
			},
			want: []string{`"resources/secrets/zz/../namespaces/team/keys.json" was added to the backup's archive later: ` +
				"Velero takes it for " + secret},
		},
		"something that is no JSON": {
			change: func(_ *scene, files map[string]string) { files[secret] = `{` },
			want:   []string{"secrets/keys in the backup's archive is not JSON any more"},
		},
		"another key": {
			change: func(s *scene, _ map[string]string) {
				key := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: fake.OADPNamespace, Name: digests.SecretName}}
				require.NoError(t, s.Client.Delete(t.Context(), key))
			},
			notVerified: []string{"the digests of the backup were made with another key: a change of its archive would not be found"},
		},
		"a backup of the time before": {
			change: func(s *scene, _ map[string]string) {
				made := s.Velero(fake.VeleroName(nightly))
				delete(made.Annotations, holdfastv1alpha1.AnnotationDigests)
				require.NoError(t, s.Client.Update(t.Context(), made))
				record := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: fake.OADPNamespace, Name: made.Name + "-digests"}}
				require.NoError(t, s.Client.Delete(t.Context(), record))
			},
			notVerified: []string{"there are no digests of the backup (it was made while drills were off): a change of its archive would not be found"},
		},
	} {
		t.Run(title, func(t *testing.T) {
			s := newScene(t, fake.Drill(weekly, nightly))
			if test.change != nil {
				files := archived()
				test.change(s, files)
				s.archive(files)
			}
			s.restored()
			require.NoError(t, s.check(holdfastv1alpha1.CheckObjects, contract.DrillStep{}))
			failed, notVerified := s.found()
			assert.Equal(t, test.want, failed)
			assert.Equal(t, test.notVerified, notVerified)
		})
	}
}
