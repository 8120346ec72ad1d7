package process

import (
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"time"

	"github.com/spf13/pflag"
	"go.uber.org/zap/zapcore"
	"k8s.io/apimachinery/pkg/util/validation"
)

// Flags are the settings that all processes share.
type Flags struct {
	Kubeconfig         string
	ClusterID          string
	OADPNamespace      string
	ResourceTimeout    time.Duration
	KubeAPIQPS         float32
	KubeAPIBurst       int
	MetricsBindAddress string
	HealthBindAddress  string
	LogLevel           string
	LogFormat          string
	PayloadKeysDir     string
}

// Bind adds the flags to a set, with their defaults.
func (f *Flags) Bind(flags *pflag.FlagSet) {
	flags.StringVar(&f.Kubeconfig, "kubeconfig", "", "path of the kubeconfig; in-cluster configuration if empty")
	flags.StringVar(&f.ClusterID, "cluster-id", "default",
		"ID of the Kubernetes cluster, unique among those that share a Temporal namespace")
	flags.StringVar(&f.OADPNamespace, "oadp-namespace", "openshift-adp", "namespace in which Velero runs")
	flags.DurationVar(&f.ResourceTimeout, "resource-timeout", 10*time.Minute,
		"how long one Kubernetes call is retried before it is reported and started again")
	flags.Float32Var(&f.KubeAPIQPS, "kube-api-qps", 500, "requests per second to the API server")
	flags.IntVar(&f.KubeAPIBurst, "kube-api-burst", 1000, "requests to the API server in a burst")
	flags.StringVar(&f.MetricsBindAddress, "metrics-bind-address", ":9464", "address of the Prometheus metrics; 0 for none")
	flags.StringVar(&f.HealthBindAddress, "health-probe-bind-address", ":8081", "address of /healthz and /readyz; 0 for none")
	BindPayloadKeysDir(flags, &f.PayloadKeysDir)
	BindLogs(flags, f)
}

// BindLogs adds the two flags of the log, for a command that does not use the others.
func BindLogs(flags *pflag.FlagSet, f *Flags) {
	flags.StringVar(&f.LogLevel, "log-level", "info", "debug, info, warn or error")
	flags.StringVar(&f.LogFormat, "log-format", "json", "json or console")
}

// BindPayloadKeysDir adds the flag that every command with a Temporal client has.
func BindPayloadKeysDir(flags *pflag.FlagSet, dir *string) {
	flags.StringVar(dir, "payload-keys-dir", "",
		"folder with the keys that encrypt what Temporal stores, one file per key and one named current; none if empty")
}

// FromEnvironment sets every flag that was not given from HOLDFAST_<FLAG>, with underscores for dashes.
func FromEnvironment(flags *pflag.FlagSet) error {
	var first error
	flags.VisitAll(func(flag *pflag.Flag) {
		name := "HOLDFAST_" + strings.ToUpper(strings.ReplaceAll(flag.Name, "-", "_"))
		value, set := os.LookupEnv(name)
		if !set || flag.Changed || first != nil || flag.Name == "help" || flag.Name == "version" {
			return
		}
		if err := flags.Set(flag.Name, value); err != nil {
			first = fmt.Errorf("--%s from %s: %w", flag.Name, name, err)
		}
	})
	return first
}

// ClusterIDFormat describes what ValidClusterID accepts.
const ClusterIDFormat = "1 to 63 lower-case letters, digits or inner hyphens, and not shared, fdb, drills or one that begins " +
	"with fdb- or drills-"

// ValidClusterID reports whether id can be a cluster's: it becomes part of workflow IDs, task queues and queries. Some IDs
// would name the task queue that all clusters share, or that of another cluster's FoundationDB tools or drills.
func ValidClusterID(id string) bool {
	first, _, _ := strings.Cut(id, "-")
	return len(validation.IsDNS1123Label(id)) == 0 && id != "shared" && first != "fdb" && first != "drills"
}

// Validate returns an error of one line that names the flag.
func (f *Flags) Validate() error {
	checks := []struct {
		ok   bool
		flag string
		want string
	}{
		{ValidClusterID(f.ClusterID), "cluster-id", ClusterIDFormat},
		{len(validation.IsDNS1123Label(f.OADPNamespace)) == 0, "oadp-namespace", "the name of a namespace"},
		{f.ResourceTimeout > 0, "resource-timeout", "a duration above 0"},
		{f.KubeAPIQPS > 0, "kube-api-qps", "a number above 0"},
		{f.KubeAPIBurst > 0, "kube-api-burst", "a number above 0"},
		{validAddress(f.MetricsBindAddress), "metrics-bind-address", "host:port, :port or 0"},
		{validAddress(f.HealthBindAddress), "health-probe-bind-address", "host:port, :port or 0"},
	}
	for _, check := range checks {
		if !check.ok {
			return fmt.Errorf("--%s: must be %s", check.flag, check.want)
		}
	}
	return f.ValidateLogs()
}

// ValidateLogs is Validate for the flags of BindLogs.
func (f *Flags) ValidateLogs() error {
	if level, err := zapcore.ParseLevel(f.LogLevel); err != nil || level > zapcore.ErrorLevel {
		return errors.New("--log-level: must be debug, info, warn or error")
	}
	if f.LogFormat != "json" && f.LogFormat != "console" {
		return errors.New("--log-format: must be json or console")
	}
	return nil
}

func validAddress(address string) bool {
	if address == "0" {
		return true
	}
	_, port, err := net.SplitHostPort(address)
	return err == nil && port != ""
}
