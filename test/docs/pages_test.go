package docs_test

import (
	"fmt"
	"path/filepath"
	"testing"

	"holdfast.dev/holdfast/test/env"
	"holdfast.dev/holdfast/workflows/workflowtest/sample"
)

// The pages' commands work, in the order in which a reader gets there, and print what the pages say. `make test` has the first
// page alone.
func TestTheCommandsOfThePages(t *testing.T) {
	if testing.Short() {
		t.Skip("starts real components")
	}
	r := newReader(t)
	for i, each := range visits {
		read := t.Run(filepath.Base(each.path), func(t *testing.T) {
			sample.Case(t, i == 0)
			r.read(t, each)
		})
		if !read {
			return // the next readers need what this one has made
		}
	}
}

// visits are the pages that this test reads, in this order: the first one's reader installs Holdfast, and the last ones' come
// back to what that has installed.
var visits = []visit{
	{
		path: "docs/getting-started.md", user: env.Admin,
		// What the overlay needs in this stack is added when the reader has written it.
		around: []around{{block: "mkdir holdfast", after: "cat local.yaml >>holdfast/kustomization.yaml"}},
	},
	tenants,
	{path: "docs/plans.md", user: "alice"},
	drills,
	{
		path: "docs/kubectl.md", user: "alice",
		around: []around{{block: "backup create before-upgrade", before: `cp "$KUBECONFIG" own.kubeconfig
export KUBECONFIG="$PWD/own.kubeconfig"
kubectl config set-context --current --namespace=shop`}},
	},
	operators,
	{path: "docs/temporal.md", user: env.Admin},
	// Two contexts of one cluster: the report reads each.
	{path: "docs/fleet.md", user: env.Admin, around: []around{{block: "--context west=prod-west", before: `cp "$KUBECONFIG" contexts.kubeconfig
export KUBECONFIG="$PWD/contexts.kubeconfig"
for context in prod-west prod-east; do
  kubectl config set-context $context --cluster="$(kubectl config view -o jsonpath='{.contexts[0].context.cluster}')" \
    --user="$(kubectl config view -o jsonpath='{.contexts[0].context.user}')"
done`}}},
	{path: "docs/monitoring.md", user: env.Admin},
	{path: "docs/runbooks/HoldfastVeleroPhaseUnknown.md", user: env.Admin},
	{path: "docs/runbooks/HoldfastVeleroStalled.md", user: env.Admin},
	{path: "docs/runbooks/HoldfastRepositoryPasswordPublished.md", user: env.Admin},
	{
		path: "README.md", user: env.Admin,
		around: []around{{block: "kubectl apply --server-side -k FOLDER", before: "ln -s holdfast FOLDER"}},
	},
	install,
}

var tenants = visit{
	path: "docs/tenants.md", user: "alice",
	around: []around{
		{block: "kubectl apply -f backup.yaml", before: `kubectl --kubeconfig "$ADMIN" create namespace shop
kubectl --kubeconfig "$ADMIN" -n shop create rolebinding alice --clusterrole=admin --user=alice
until kubectl auth can-i create nonadminbackups -n shop; do sleep 1; done
kubectl -n shop create configmap web --from-literal=page=hello
kubectl -n shop label configmap web app=web
kubectl -n shop create rolebinding deployer --clusterrole=view --user=bob`},
		{
			block: `{"deleteBackup":true}`, before: complete("nab/nightly"),
			after: `kubectl -n shop wait nab nightly --for=delete --timeout=5m
kubectl apply -f backup.yaml
` + complete("nab/nightly"),
		},
		{block: "tar -xzf", before: backup("whole", "{backupSpec: {}}") + `
velero=$(kubectl -n shop get nab whole -o jsonpath='{.status.veleroBackup.name}')
cp "$BUCKET/backups/$velero/$velero.tar.gz" contents.tar.gz
kubectl -n shop delete rolebinding deployer`},
		// Files are to be had of a backup in the tenant's own bucket alone.
		{block: "kubectl apply -f request.yaml", before: `
kubectl -n shop patch nab nightly --type merge -p '{"spec":{"deleteBackup":true}}'
kubectl -n shop wait nab nightly --for=delete --timeout=5m
kubectl -n shop create secret generic offsite --from-file=cloud=account
kubectl apply -f offsite.yaml
kubectl -n shop wait nabsl offsite --for=condition=Ready --timeout=5m
` + backup("nightly", "{backupSpec: {storageLocation: offsite}}")},
		{
			block:  "kubectl -n shop create secret generic own-credentials",
			before: `printf '[default]\naws_access_key_id = a\naws_secret_access_key = b\n' >FILE`,
		},
		{block: "kubectl apply -f location.yaml", before: `sed -i "s#https://s3.example.com#http://127.0.0.1:9#" location.yaml`},
	},
}

// complete waits until a backup or restore in namespace shop is complete.
func complete(name string) string {
	return "kubectl -n shop wait --for=condition=Complete --timeout=5m " + name
}

// backup takes a backup in namespace shop.
func backup(name, spec string) string {
	return request("NonAdminBackup", name, spec) + complete("nab/"+name)
}

// request creates an object of the tenants' in namespace shop.
func request(kind, name, spec string) string {
	return fmt.Sprintf(`kubectl apply -f - <<EOF
{apiVersion: oadp.openshift.io/v1alpha1, kind: %s, metadata: {name: %s, namespace: shop}, spec: %s}
EOF
`, kind, name, spec)
}

// drills has an administrator install them first.
var drills = visit{
	path: "docs/drills.md", user: "alice",
	around: []around{{block: "kubectl apply -f drill.yaml", before: `echo 'components: [../deploy/components/drills]' >>holdfast/kustomization.yaml
kubectl --kubeconfig "$ADMIN" apply --server-side -k holdfast
kubectl --kubeconfig "$ADMIN" -n openshift-adp create configmap holdfast-policy --from-literal=holdfast='drills: {enabled: true}'
kubectl -n shop wait bplan nightly --for=condition=ObjectiveMet --timeout=5m`}},
}

var operators = visit{
	path: "docs/operators.md", user: env.Admin,
	around: []around{
		{
			block:  "kubectl -n openshift-adp patch configmap holdfast-policy",
			before: "kubectl apply -f deploy/samples/policy.yaml",
			after: `kubectl -n openshift-adp patch configmap holdfast-policy --type merge \
  -p '{"data": {"holdfast": "queue: {maxActive: 4}"}}'`,
		},
		{
			block:  "holdfast list approvals -o json",
			before: "kubectl -n shop wait nabsl offsite --for=condition=ClusterAdminApproved=false --timeout=5m",
			after: `holdfast approve shop/offsite --timeout 5m --reason 'ticket 4711'
kubectl -n shop wait nabsl offsite --for=condition=Ready --timeout=5m`,
		},
		{block: "holdfast queue set-limit", before: "until holdfast queue | grep 'at most 4'; do sleep 1; done"},
		{
			block:  "holdfast describe restore shop/undo",
			before: request("NonAdminRestore", "undo", "{restoreSpec: {backupName: whole}}") + complete("nar/undo"),
		},
		{block: "get configmap holdfast-released", before: backup("released", "{backupSpec: {}}") + `
kubectl -n shop patch nab released --type merge -p '{"spec":{"forceDeleteBackup":true}}'
kubectl -n shop wait nab released --for=delete --timeout=5m`},
	},
}

// install is read last: its reader terminates all workflows.
var install = visit{
	path: "docs/install.md", user: env.Admin,
	around: []around{
		{block: "--from-file=api-key=FILE", after: "kubectl -n openshift-adp delete secret holdfast-temporal"},
		{block: "--from-file=tls.crt=FILE", after: "kubectl -n openshift-adp delete secret holdfast-temporal"},
		{block: "--from-literal=HOLDFAST_CLUSTER_ID=production-1", after: "kubectl -n openshift-adp delete configmap holdfast"},
		{block: "kubectl -n try create configmap", before: "kubectl create namespace try"},
	},
}
