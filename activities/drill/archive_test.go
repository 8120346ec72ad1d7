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
		repack            func(packed []byte)
		want, notVerified []string
	}{
		"nothing": {},
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
			want:   []string{"secrets/keys is not what was backed up"},
		},
		"a volume of the cluster": {
			change: func(_ *scene, files map[string]string) {
				files["resources/persistentvolumes/cluster/pv-1.json"] = `{"kind":"PersistentVolume","spec":{}}`
			},
			want: []string{"persistentvolumes/cluster/pv-1 is not what was backed up: spec differs"},
		},
		"another version, which Velero may prefer": {
			change: func(_ *scene, files map[string]string) {
				delete(files, "resources/configmaps/v1-preferredversion/namespaces/team/a.json")
				files["resources/configmaps/v1/namespaces/team/a.json"] = `{"kind":"ConfigMap","metadata":{"name":"a"},"data":{"size":"2"}}`
			},
			want: []string{
				"configmaps/v1/a was added to the backup's archive later",
				"the backup's archive holds 0 copies of objects in their preferred API version, and held 1 when the backup was complete",
			},
		},
		"what cannot be read to its end": {
			change: func(_ *scene, files map[string]string) {
				files[secret] = `{"kind":"Secret","metadata":{"name":"keys"},"data":{"password":"bmV3"}}`
			},
			repack: func(packed []byte) { packed[len(packed)-8]++ }, // the checksum at the end of gzip, which Velero does not read
			want: []string{
				"secrets/keys is not what was backed up: data.password differs",
				"read backups/" + fake.VeleroName(nightly) + "/" + fake.VeleroName(nightly) + ".tar.gz: it is not the gzipped archive that " +
					"Velero writes; it could be read when the backup was complete",
			},
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
				packed := fake.Archive(t, files)
				if test.repack != nil {
					test.repack(packed)
				}
				s.pack(packed)
			}
			s.restored()
			require.NoError(t, s.check(holdfastv1alpha1.CheckObjects, contract.DrillStep{}))
			failed, notVerified := s.found()
			assert.Equal(t, test.want, failed)
			assert.Equal(t, test.notVerified, notVerified)
		})
	}
}
