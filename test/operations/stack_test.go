// Package operations_test runs Holdfast's processes the ways in which operators of Temporal want them: with encrypted
// payloads, as versioned workers, stopped in the midst of work. On the real API server and Temporal; Velero's part is
// played by the tests.
package operations_test

import (
	"context"
	"flag"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/go-logr/logr"
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"

	"holdfast.dev/holdfast/k8s"
	"holdfast.dev/holdfast/test/env"
	"holdfast.dev/holdfast/test/tools"
)

// patience is how long the slowest ordinary step may take on a loaded machine.
const patience = 90 * time.Second

// callPatience is how long one question to Temporal, or to a process, may take.
const callPatience = 20 * time.Second

var (
	stack    *env.Env
	admin    client.Client
	binaries map[string]string
)

func TestMain(m *testing.M) {
	flag.Parse()
	ctrllog.SetLogger(logr.Discard())
	if testing.Short() {
		fmt.Println("skipped: these tests start real components (-short)")
		os.Exit(0)
	}
	code, err := run(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

func run(m *testing.M) (int, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Minute)
	defer cancel()
	var err error
	if binaries, err = tools.BuildHoldfast(ctx, os.Stdout); err != nil {
		return 0, err
	}
	if stack, err = env.Start(ctx, env.Options{
		Progress: os.Stdout, Without: []string{env.S3, env.Velero}, FoundationDB: true,
	}); err != nil {
		return 0, fmt.Errorf("start the stack: %w", err)
	}
	defer stack.Stop()
	config, err := stack.RESTConfig(env.Admin)
	if err != nil {
		return 0, err
	}
	config.QPS = -1
	if admin, err = client.New(config, client.Options{Scheme: k8s.Scheme()}); err != nil {
		return 0, err
	}
	location := &velerov1.BackupStorageLocation{
		ObjectMeta: metav1.ObjectMeta{Namespace: env.OADPNamespace, Name: "default"},
		Spec: velerov1.BackupStorageLocationSpec{
			Provider: "aws", Default: true,
			StorageType: velerov1.StorageType{ObjectStorage: &velerov1.ObjectStorageLocation{Bucket: "none"}},
		},
	}
	if err := admin.Create(ctx, location); err != nil {
		return 0, fmt.Errorf("create the default location: %w", err)
	}
	return m.Run(), nil
}
