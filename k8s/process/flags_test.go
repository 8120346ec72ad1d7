package process_test

import (
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"holdfast.dev/holdfast/k8s/process"
)

// parse reads flags and the environment as a process does at its start.
func parse(args ...string) (*process.Flags, error) {
	flags := &process.Flags{}
	set := pflag.NewFlagSet("test", pflag.ContinueOnError)
	flags.Bind(set)
	if err := set.Parse(args); err != nil {
		return nil, err
	}
	if err := process.FromEnvironment(set); err != nil {
		return nil, err
	}
	return flags, flags.Validate()
}

func TestTheDefaultsAreValid(t *testing.T) {
	flags, err := parse()
	require.NoError(t, err)
	assert.Equal(t, &process.Flags{
		ClusterID: "default", OADPNamespace: "openshift-adp", ResourceTimeout: 10 * time.Minute,
		KubeAPIQPS: 500, KubeAPIBurst: 1000, MetricsBindAddress: ":9464", HealthBindAddress: ":8081",
		LogLevel: "info", LogFormat: "json",
	}, flags)
}

// Every flag has its variable, and takes its value in the same form.
func TestEveryFlagIsTakenFromTheEnvironment(t *testing.T) {
	for name, value := range map[string]string{
		"KUBECONFIG": "/tmp/config", "CLUSTER_ID": "west", "OADP_NAMESPACE": "velero", "RESOURCE_TIMEOUT": "90s",
		"KUBE_API_QPS": "12.5", "KUBE_API_BURST": "7", "METRICS_BIND_ADDRESS": "0", "HEALTH_PROBE_BIND_ADDRESS": "127.0.0.1:1",
		"LOG_LEVEL": "debug", "LOG_FORMAT": "console", "PAYLOAD_KEYS_DIR": "/keys",
	} {
		t.Setenv("HOLDFAST_"+name, value)
	}
	flags, err := parse()
	require.NoError(t, err)
	assert.Equal(t, &process.Flags{
		Kubeconfig: "/tmp/config", ClusterID: "west", OADPNamespace: "velero", ResourceTimeout: 90 * time.Second,
		KubeAPIQPS: 12.5, KubeAPIBurst: 7, MetricsBindAddress: "0", HealthBindAddress: "127.0.0.1:1",
		LogLevel: "debug", LogFormat: "console", PayloadKeysDir: "/keys",
	}, flags)
}

func TestAFlagGoesBeforeItsVariable(t *testing.T) {
	t.Setenv("HOLDFAST_CLUSTER_ID", "east")
	t.Setenv("HOLDFAST_LOG_LEVEL", "nonsense")
	flags, err := parse("--cluster-id=west", "--log-level=warn")
	require.NoError(t, err)
	assert.Equal(t, "west", flags.ClusterID)
	assert.Equal(t, "warn", flags.LogLevel)

	flags, err = parse("--log-level=warn", "--cluster-id=default")
	require.NoError(t, err)
	assert.Equal(t, "default", flags.ClusterID, "a flag that says the default says it")
}

// A bad value ends the process at its start, with one line that names the flag.
func TestABadValueIsRefusedInOneLineThatNamesTheFlag(t *testing.T) {
	bad := map[string][]string{
		"cluster-id": {
			"", "West", "we/st", "we st", "-west", "west-", "wést", strings.Repeat("w", 64), "west\nnorth", "west'or'1",
		},
		"oadp-namespace":            {"", "Velero", "a.b", "-a", strings.Repeat("a", 64), "a\nb"},
		"resource-timeout":          {"", "0", "0s", "-1s", "10", "soon", "1s\n"},
		"kube-api-qps":              {"", "0", "-1", "NaN", "many", "1\n2"},
		"kube-api-burst":            {"", "0", "-1", "1.5", "many"},
		"metrics-bind-address":      {"", "9464", "localhost", ":", "1.2.3.4:5:6", "a\nb"},
		"health-probe-bind-address": {"", "8081", "localhost", ":", "::1:80"},
		"log-level":                 {"loud", "fatal", "panic", "dpanic", "5", "in\nfo"},
		"log-format":                {"", "xml", "JSON", "json\n"},
	}
	for flag, values := range bad {
		for _, value := range values {
			for _, way := range []string{"flag", "variable"} {
				t.Run(flag+" "+value+" by "+way, func(t *testing.T) {
					var args []string
					if way == "flag" {
						args = []string{"--" + flag + "=" + value}
					} else {
						t.Setenv("HOLDFAST_"+strings.ToUpper(strings.ReplaceAll(flag, "-", "_")), value)
					}
					_, err := parse(args...)
					require.Error(t, err)
					assert.Contains(t, err.Error(), "--"+flag)
					assert.NotContains(t, err.Error(), "\n")
				})
			}
		}
	}
}

func TestGoodValuesAreTaken(t *testing.T) {
	for flag, values := range map[string][]string{
		"cluster-id":           {"w", "1", "west-1", strings.Repeat("w", 63)},
		"resource-timeout":     {"1ms", "24h"},
		"kube-api-qps":         {"0.1", "1000"},
		"metrics-bind-address": {"0", ":0", "127.0.0.1:80", "[::1]:80", "localhost:http"},
		"log-level":            {"debug", "info", "warn", "error", "INFO"},
	} {
		for _, value := range values {
			t.Run(flag+" "+value, func(t *testing.T) {
				_, err := parse("--" + flag + "=" + value)
				assert.NoError(t, err)
			})
		}
	}
}

// An error names the variable too, for users who never wrote a flag.
func TestAnErrorNamesTheVariable(t *testing.T) {
	t.Setenv("HOLDFAST_KUBE_API_BURST", "many")
	_, err := parse()
	require.ErrorContains(t, err, "--kube-api-burst from HOLDFAST_KUBE_API_BURST")
}
