package restored_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"

	"holdfast.dev/holdfast/activities/restored"
	"holdfast.dev/holdfast/k8s/objectstore"
)

const team = "team"

// A drill restores into another namespace: the lists of the restore are of that one.
func TestMissingObjects(t *testing.T) {
	backup := objectstore.ResourceList{
		"v1/ConfigMap": {"team/b", "team/a"}, "v1/Secret": {"team/s"}, "apps/v1/Deployment": {"team/web"},
		"v1/Pod": {"team/done"}, "batch/v1/Job": {"team/done"}, "v1/Event": {"team/e"}, "events.k8s.io/v1/Event": {"team/e"},
		"v1/PersistentVolume": {"pv"}, "v1/Namespace": {"team"},
	}
	const deployments, secrets = "Deployment web", "Secret s"
	for title, test := range map[string]struct {
		spec     velerov1.RestoreSpec
		restored objectstore.ResourceList
		warnings []string
		want     []string
	}{
		"nothing was restored":      {want: []string{deployments, "ConfigMap a", "ConfigMap b", secrets}},
		"everything was":            {restored: objectstore.ResourceList{"v1/ConfigMap": {"team/a(created)", "team/b(updated)"}, "v1/Secret": {"team/s(skipped)"}, "apps/v1/Deployment": {"team/web(created)"}}},
		"only some kinds wanted":    {spec: velerov1.RestoreSpec{IncludedResources: []string{"cm"}}, restored: objectstore.ResourceList{"v1/ConfigMap": {"team/a(created)"}}, want: []string{"ConfigMap b"}},
		"all kinds wanted":          {spec: velerov1.RestoreSpec{IncludedResources: []string{"*"}}, want: []string{deployments, "ConfigMap a", "ConfigMap b", secrets}},
		"kinds not wanted":          {spec: velerov1.RestoreSpec{ExcludedResources: []string{"deployments.apps", "ConfigMap", "secrets"}}},
		"kinds not wanted, shortly": {spec: velerov1.RestoreSpec{ExcludedResources: []string{"deploy", "cm", "secret"}}},
		"another group's kind":      {spec: velerov1.RestoreSpec{ExcludedResources: []string{"deployments.extensions", "cm", "secret"}}, want: []string{deployments}},
		"of another namespace":      {spec: velerov1.RestoreSpec{ExcludedResources: []string{"deploy", "secrets"}}, restored: objectstore.ResourceList{"v1/ConfigMap": {"crew/a(created)", "crew/b(created)"}}, want: []string{"ConfigMap a", "ConfigMap b"}},
		"was there, in other words": {spec: velerov1.RestoreSpec{ExcludedResources: []string{"deploy", "cm"}}, restored: objectstore.ResourceList{"v1/Secret": {"team/s(failed)"}}, warnings: []string{`could not restore, Secret "s" already exists. Warning: x`}},
		"another one was there":     {spec: velerov1.RestoreSpec{ExcludedResources: []string{"deploy", "cm"}}, restored: objectstore.ResourceList{"v1/Secret": {"team/s(failed)"}}, warnings: []string{`could not restore, Secret:s2 already exists.`}, want: []string{secrets}},
	} {
		t.Run(title, func(t *testing.T) {
			assert.Equal(t, test.want, restored.Comparison{
				Namespace: team, Into: team, Backup: backup, Restored: test.restored, Spec: &test.spec,
				Results: objectstore.Results{objectstore.WarningsKey: {Namespaces: map[string][]string{team: test.warnings}}},
			}.Missing())
			mapped := objectstore.ResourceList{}
			for kind, entries := range test.restored {
				for _, entry := range entries {
					mapped[kind] = append(mapped[kind], strings.Replace(entry, team+"/", "drill/", 1))
				}
			}
			assert.Equal(t, test.want, restored.Comparison{
				Namespace: team, Into: "drill", Backup: backup, Restored: mapped, Spec: &test.spec,
				Results: objectstore.Results{objectstore.WarningsKey: {Namespaces: map[string][]string{"drill": test.warnings}}},
			}.Missing())
		})
	}
}
