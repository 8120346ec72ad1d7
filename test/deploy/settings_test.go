package deploy_test

import (
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/contrib/envconfig"
	corev1 "k8s.io/api/core/v1"
)

// program is what one of our programs, run in one way, says of itself.
type program struct {
	flags     map[string]string // flag to default
	variables []string
}

var (
	helpFlag     = regexp.MustCompile(`(?m)^\s+(?:-\w, )?--([a-z-]+)(?:[^\n]*\(default "?([^")]*)"?\))?`)
	helpVariable = regexp.MustCompile(`TEMPORAL_[A-Z_]+[A-Z]`)
)

// askProgram runs a program of this checkout with --help.
func askProgram(t *testing.T, command ...string) program {
	t.Helper()
	programs, err := binaries()
	require.NoError(t, err)
	binary := programs[path.Base(command[0])]
	require.NotEmpty(t, binary, "no program %s", command[0])
	help, err := exec.CommandContext(t.Context(), binary, append(slices.Clone(command[1:]), "--help")...).CombinedOutput()
	require.NoError(t, err, string(help))
	p := program{flags: map[string]string{}, variables: append(temporalVariables(t), helpVariable.FindAllString(string(help), -1)...)}
	p.variables = append(p.variables, "GOMEMLIMIT") // every Go program does
	for _, match := range helpFlag.FindAllStringSubmatch(string(help), -1) {
		p.flags[match[1]] = match[2]
		p.variables = append(p.variables, "HOLDFAST_"+strings.ToUpper(strings.ReplaceAll(match[1], "-", "_")))
	}
	require.Contains(t, p.flags, "cluster-id")
	return p
}

// recorder notes which variables Temporal's SDK asks for.
type recorder struct{ asked []string }

func (*recorder) Environ() []string { return nil }

func (r *recorder) LookupEnv(name string) (string, bool) {
	r.asked = append(r.asked, name)
	return "", false
}

func temporalVariables(t *testing.T) []string {
	t.Helper()
	var r recorder
	_, err := envconfig.LoadClientOptions(envconfig.LoadClientOptionsRequest{
		ConfigFilePath: filepath.Join(t.TempDir(), "none.toml"), EnvLookup: &r,
	})
	require.NoError(t, err)
	require.Contains(t, r.asked, "TEMPORAL_ADDRESS")
	return append(r.asked, "TEMPORAL_CONFIG_FILE") // not asked for when a path is given
}

// knows fails the test for every variable and flag that a program would pass over in silence or refuse.
func (p program) knows(t *testing.T, where string, variables, args []string) {
	t.Helper()
	for _, variable := range variables {
		assert.Contains(t, p.variables, variable, "%s: the program does not read it", where)
	}
	for _, arg := range args {
		if flag, ok := strings.CutPrefix(arg, "--"); ok {
			flag, _, _ = strings.Cut(flag, "=")
			assert.Contains(t, p.flags, flag, "%s: the program has no such flag", where)
		}
	}
}

func names(variables []corev1.EnvVar) []string {
	var found []string
	for _, variable := range variables {
		found = append(found, variable.Name)
	}
	return found
}

// A variable that no program knows would be passed over in silence.
func TestProgramsKnowEverySettingOfTheDeployments(t *testing.T) {
	tests := map[string]objects{
		"base":                                   render(t, inCheckout(t, "deploy", "base")),
		"example":                                render(t, inCheckout(t, "deploy", "overlays", "example")),
		"example with everything that it offers": renderOverlay(t, everythingOfTheExample(t)+"components: [BASE/components/fdb, BASE/components/drills]\n"),
	}
	for title, all := range tests {
		t.Run(title, func(t *testing.T) {
			var taken []string // by their key, for another variable
			for _, o := range all.ofKind("Deployment") {
				name := o.GetName()
				container := all.deployment(t, name).Spec.Template.Spec.Containers[0]
				for _, variable := range container.Env {
					if source := variable.ValueFrom; source != nil && source.ConfigMapKeyRef != nil {
						taken = append(taken, source.ConfigMapKeyRef.Key)
					}
				}
				p := askProgram(t, container.Command...)
				p.knows(t, name, names(container.Env), slices.Concat(container.Command, container.Args))
				for _, port := range container.Ports {
					flag := map[string]string{"health": "health-probe-bind-address", "metrics": "metrics-bind-address"}[port.Name]
					assert.Equal(t, p.flags[flag], fmt.Sprintf(":%d", port.ContainerPort), "%s: port %s", name, port.Name)
				}
			}
			p := askProgram(t, workerName) // the one that knows all; what both have in common is in the ConfigMap
			for variable := range all.settings(t).Data {
				if slices.Contains(taken, variable) {
					continue
				}
				p.knows(t, "ConfigMap holdfast", []string{variable}, nil)
			}
		})
	}
}

// everythingOfTheExample is the example with the lines that are commented out.
func everythingOfTheExample(t *testing.T) string {
	t.Helper()
	example := readFile(t, "deploy", "overlays", "example", "kustomization.yaml")
	offered := regexp.MustCompile(`(?m)^      # (- [A-Z_]+=)`)
	require.NotEmpty(t, offered.FindString(example))
	return strings.ReplaceAll(offered.ReplaceAllString(example, "      $1"), "../../base", "BASE/base")
}

// The paths that the example offers lie in what the Deployments mount.
func TestTheExamplesFilesAreMounted(t *testing.T) {
	all := renderOverlay(t, everythingOfTheExample(t))
	var mounts []string
	for _, mount := range all.deployment(t, workerName).Spec.Template.Spec.Containers[0].VolumeMounts {
		mounts = append(mounts, mount.MountPath)
	}
	checked := 0
	for variable, value := range all.settings(t).Data {
		if strings.HasPrefix(value, "/") {
			checked++
			within := slices.ContainsFunc(mounts, func(mount string) bool { return value == mount || path.Dir(value) == mount })
			assert.True(t, within, "%s=%s is in none of %v", variable, value, mounts)
		}
	}
	assert.GreaterOrEqual(t, checked, 4)
}

// What the documents tell people to set exists.
func TestDocumentsNameVariablesThatExist(t *testing.T) {
	worker, watcher := askProgram(t, workerName), askProgram(t, "holdfast", "watch")
	known := slices.Concat(worker.variables, watcher.variables)
	// What only the compose file takes.
	known = append(known, "HOLDFAST_KUBECONFIG_FILE", "HOLDFAST_USER")
	document, err := os.ReadFile(inCheckout(t, "docs", "install.md"))
	require.NoError(t, err)
	found := regexp.MustCompile(`\b(?:HOLDFAST|TEMPORAL)_[A-Z_]*[A-Z]\b`).FindAllString(string(document), -1)
	require.NotEmpty(t, found)
	for _, variable := range found {
		assert.Contains(t, known, variable)
	}
}
