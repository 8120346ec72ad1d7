package tenant_test

import (
	"bytes"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"holdfast.dev/holdfast/starter/tenant"
)

// run runs the command without a cluster: what is wrong must be found before a request is sent.
func run(t *testing.T, args ...string) (status tenant.Status, out, said string) {
	t.Helper()
	streams, _, stdout, stderr := genericiooptions.NewTestIOStreams()
	nowhere := filepath.Join(t.TempDir(), "none")
	status = tenant.Run(t.Context(), streams, append(args, "--kubeconfig", nowhere))
	return status, stdout.String(), stderr.String()
}

func TestBadInputIsRefusedBeforeAnythingIsSent(t *testing.T) {
	t.Parallel()
	for args, want := range map[string]string{
		"backup create":                                                 "accepts 1 arg(s), received 0",
		"backup create Nightly":                                         `name "Nightly": a lowercase RFC 1123 subdomain`,
		"backup create a --timeout 5s":                                  "--timeout: must be with --wait",
		"backup create a --wait --timeout -5s":                          "--timeout: must be a duration of 0 or more",
		"backup create a --wait --dry-run=client":                       "--wait: nothing comes of a --dry-run",
		"backup create a --dry-run=maybe":                               "--dry-run: must be none, client or server",
		"backup create a -l a===b":                                      "--selector: ",
		"backup create a --ttl -1h":                                     "--ttl: must be a duration of 0 or more",
		"backup logs a --file contents":                                 "--file: must be log or results",
		"backup logs a --timeout 0":                                     "--timeout: must be a duration above 0",
		"backup logs a --object-store-ca /none":                         "--object-store-ca: open /none",
		"restore create":                                                "--from-backup or --from-plan: one of them must be given, not both",
		"restore create --from-backup a --from-plan b":                  "--from-backup or --from-plan: one of them must be given, not both",
		"restore create --from-backup A":                                `--from-backup "A": `,
		"restore create --from-backup a --existing-resource-policy all": "--existing-resource-policy: must be none or update",
		"plan pause A":                                                  `plan "A": `,
		"plan run a --timeout 5s":                                       "--timeout: must be with --wait",
		"backup get --none":                                             "unknown flag: --none",
	} {
		t.Run(args, func(t *testing.T) {
			t.Parallel()
			status, out, said := run(t, strings.Fields(args)...)
			assert.Equal(t, tenant.StatusError, status)
			assert.Empty(t, out)
			assert.Contains(t, said, want)
			assert.True(t, strings.HasPrefix(said, "error: "), said)
		})
	}
}

func TestErrorsOfSeveralLinesAreReadable(t *testing.T) {
	t.Parallel()
	status, _, said := run(t, "bakup")
	assert.Equal(t, tenant.StatusError, status)
	assert.Contains(t, said, "error: unknown command \"bakup\"")
	assert.Contains(t, said, "\n  Did you mean this?\n    backup\n")
	assert.NotContains(t, said, `\n`)
}

func TestWithoutAClusterItIsSaidSo(t *testing.T) {
	t.Parallel()
	status, _, said := run(t, "backup", "create", "nightly")
	assert.Equal(t, tenant.StatusError, status)
	assert.Contains(t, said, "read the kubeconfig: ")
}

func TestEveryCommandHasHelp(t *testing.T) {
	t.Parallel()
	streams := genericiooptions.NewTestIOStreamsDiscard()
	for _, group := range tenant.Command(streams).Commands() {
		for _, command := range group.Commands() {
			t.Run(command.CommandPath(), func(t *testing.T) { // not parallel: they are one tree
				assert.NotEmpty(t, command.Short)
				var out bytes.Buffer
				command.SetOut(&out)
				require.NoError(t, command.Help())
				assert.Contains(t, out.String(), "kubectl holdfast "+group.Name()+" "+command.Name())
			})
		}
	}
	status, out, _ := run(t, "plan")
	assert.Equal(t, tenant.StatusGood, status)
	assert.Contains(t, out, "pause")
}
