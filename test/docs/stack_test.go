// Package docs_test checks every block of commands in README.md and docs: a test runs it, or its page says why not. What it runs
// itself goes through one stack: the reader of docs/getting-started.md installs Holdfast in it, and those of the other pages use
// that.
package docs_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	"github.com/stretchr/testify/require"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"

	"holdfast.dev/holdfast/test/env"
	"holdfast.dev/holdfast/test/env/kubelet"
	"holdfast.dev/holdfast/test/env/spawn"
	"holdfast.dev/holdfast/test/tools"
	"holdfast.dev/holdfast/workflows/workflowtest/sample"
)

// image is the one that the kubelet stand-in has: this checkout's programs.
const image = "registry.test/holdfast"

// reader follows pages: a person at the top of a checkout, in a cluster with Velero and without Holdfast.
type reader struct {
	*env.Env
	folder string // has deploy, and gets what the pages have the reader store
	bin    string // the programs of the image, and the reader's
}

func newReader(t *testing.T) *reader {
	t.Helper()
	ctrllog.SetLogger(logr.Discard())
	r := &reader{folder: t.TempDir(), bin: t.TempDir()}
	built, err := tools.BuildHoldfast(t.Context(), t.Output())
	require.NoError(t, err)
	for name, program := range built {
		require.NoError(t, os.Symlink(program, filepath.Join(r.bin, name)))
	}
	r.Env, err = env.Start(t.Context(), env.Options{
		Bare: true, Drills: true, Progress: t.Output(), VeleroArgs: []string{"--concurrent-backups=4"},
		Kubelet: &kubelet.Options{Images: map[string]kubelet.Image{image: {Bin: r.bin}}},
	})
	require.NoError(t, err)
	t.Cleanup(r.Stop)
	r.ReportFailure(t)
	t.Cleanup(func() { r.reportPods(t) })
	for _, name := range []string{tools.Kubectl, tools.Temporal, tools.Velero} {
		require.NoError(t, os.Symlink(r.Binary(name), filepath.Join(r.bin, name)))
	}
	require.NoError(t, os.CopyFS(filepath.Join(r.folder, "deploy"), os.DirFS(filepath.Join(checkout(t), "deploy"))))
	if sample.Whole() {
		r.buildPlugin(t)
	}
	r.write(t, "local.yaml", r.local(t))
	r.rentBucket(t)
	return r
}

// buildPlugin gives the readers `kubectl holdfast`.
func (r *reader) buildPlugin(t *testing.T) {
	t.Helper()
	build := exec.CommandContext(t.Context(), "go", "build", "-trimpath", "-tags=disable_grpc_modules",
		"-o", filepath.Join(r.bin, "kubectl-holdfast"), "./starter/kubectl-holdfast")
	build.Dir = checkout(t)
	output, err := build.CombinedOutput()
	require.NoError(t, err, "%s", output)
}

// reportPods reports panics of Holdfast's processes, and the end of their logs if the test has failed.
func (r *reader) reportPods(t *testing.T) {
	t.Helper()
	logs, err := filepath.Glob(filepath.Join(r.LogDir(), "pods", "*.log"))
	require.NoError(t, err)
	for _, log := range logs {
		env.TellPanic(os.Stderr, filepath.Base(log), log)
		if t.Failed() {
			t.Logf("end of %s\n%s", log, spawn.LogTail(log, 40))
		}
	}
}

// local is what the overlay that installs Holdfast needs in this stack alone: addresses, since all Pods share loopback, and
// kubeconfigs, since no Pod has a token of its service account. It ends a kustomization.yaml.
func (r *reader) local(t *testing.T) string {
	t.Helper()
	var text strings.Builder
	text.WriteString("patches:\n")
	for _, name := range []string{env.HoldfastWorker, env.HoldfastWatcher, env.HoldfastDrills} {
		health, err := env.FreeAddress()
		require.NoError(t, err)
		metrics, err := env.FreeAddress()
		require.NoError(t, err)
		fmt.Fprintf(&text, "  - target: {kind: Deployment, name: %s}\n    patch: |-\n", name)
		text.WriteString("      - {op: replace, path: /spec/replicas, value: 1}\n")
		for _, variable := range [][2]string{
			{"KUBECONFIG", r.Kubeconfig(name)}, {"HEALTH_PROBE_BIND_ADDRESS", health}, {"METRICS_BIND_ADDRESS", metrics},
		} {
			fmt.Fprintf(&text, "      - {op: add, path: /spec/template/spec/containers/0/env/-, value: {name: HOLDFAST_%s, value: %q}}\n",
				variable[0], variable[1])
		}
	}
	return text.String()
}

// rentBucket writes the keys of a tenant's own bucket, and a location that names it.
func (r *reader) rentBucket(t *testing.T) {
	t.Helper()
	account, err := r.CreateAccount(t.Context(), "shop-bucket")
	require.NoError(t, err)
	r.write(t, "account", string(account.CredentialsFile()))
	r.write(t, "offsite.yaml", fmt.Sprintf(`apiVersion: oadp.openshift.io/v1alpha1
kind: NonAdminBackupStorageLocation
metadata: {name: offsite, namespace: shop}
spec:
  backupStorageLocationSpec:
    provider: aws
    objectStorage: {bucket: %s}
    credential: {name: offsite, key: cloud}
    config: {region: %s, s3Url: %q, s3ForcePathStyle: "true"}
`, account.Bucket, r.Storage().Region, r.Storage().Endpoint))
}

func (r *reader) write(t *testing.T, name, content string) {
	t.Helper()
	require.NoError(t, os.WriteFile(filepath.Join(r.folder, name), []byte(content), 0o600))
}

// environment is that of one of the stack's users. The pages have its first three variables; ADMIN and BUCKET are for what they
// leave to others.
func (r *reader) environment(t *testing.T, user string) []string {
	return []string{
		"HOLDFAST_OADP_NAMESPACE=" + env.OADPNamespace, "IMAGE=" + image, "TEMPORAL_ADDRESS=" + r.TemporalAddress(),
		"ADMIN=" + r.Kubeconfig(env.Admin), "BUCKET=" + filepath.Join(r.Storage().Dir, r.Storage().Prefix),
		"KUBECONFIG=" + r.Kubeconfig(user), "HOME=" + t.TempDir(), "LANG=C.UTF-8",
		"PATH=" + r.bin + string(filepath.ListSeparator) + os.Getenv("PATH"),
	}
}

// visit is how one page is read.
type visit struct {
	path, user string
	around     []around
}

// around is what the page leaves to others before and after a block: commands of the same shell.
type around struct {
	block         string // a text of that block alone
	before, after string
}

// extras are programs of pages that not every machine has.
var extras = []string{"jq", "curl", "openssl"}

// read has one person follow a page: store what it has the reader store, and run the blocks that are this test's, in their order.
func (r *reader) read(t *testing.T, v visit) {
	t.Helper()
	sh := openTerminal(t, r.folder, r.environment(t, v.user))
	printed, done := "", 0
	for _, block := range readPage(t, v.path).blocks {
		if block.mark.file != "" {
			r.write(t, block.mark.file, block.text)
		}
		if block.mark.prints {
			require.Empty(t, differs(block.text, printed), block.where)
		}
		if block.commands() == "" || block.mark.runBy != ours {
			continue
		}
		var beside around
		for _, each := range v.around {
			if strings.Contains(block.commands(), each.block) {
				beside = each
				done++
			}
		}
		if beside.before != "" {
			sh.run("before "+block.where, beside.before)
		}
		if name := missing(block.commands()); name != "" {
			require.False(t, sample.Whole(), "%s needs %s", block.where, name)
			t.Logf("%s is not run: there is no %s", block.where, name)
		} else {
			printed = sh.run(block.where, block.commands())
		}
		if beside.after != "" {
			sh.run("after "+block.where, beside.after)
		}
	}
	require.Equal(t, len(v.around), done, "each text is in one block")
}

// missing is the first of the extras that commands need and this machine has not.
func missing(commands string) string {
	for _, name := range extras {
		if _, err := exec.LookPath(name); err != nil && strings.Contains(commands, name+" ") {
			return name
		}
	}
	return ""
}
