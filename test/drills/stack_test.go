package drills_test

import (
	"context"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	temporalclient "go.temporal.io/sdk/client"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"

	"holdfast.dev/holdfast/k8s/policy"
	"holdfast.dev/holdfast/test/env"
	"holdfast.dev/holdfast/test/env/kubelet"
)

// Shared by all tests. Unlike test/e2e there is a kubelet stand-in: what a drill restores becomes ready, or does not.
var (
	stack    *env.Env
	admin    client.WithWatch
	temporal temporalclient.Client
)

const (
	// running is an image that runs until it is ended.
	running = "example.com/running:1"
	// checking is an image that prints its first argument, and ends with exit code 1 if there is one.
	checking = "example.com/checking:1"
)

func check(_ context.Context, call kubelet.ImageCall) int {
	for _, complaint := range call.Args {
		fmt.Fprintln(call.Output, complaint)
		return 1
	}
	return 0
}

func TestMain(m *testing.M) {
	flag.Parse()
	ctrllog.SetLogger(logr.Discard())
	if testing.Short() {
		fmt.Println("skipped: drills start real components (-short)")
		os.Exit(0)
	}
	_ = flag.Set("test.parallel", "8") // they wait for Velero most of the time
	os.Exit(run(m))
}

func run(m *testing.M) int {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Minute)
	defer cancel()
	if err := start(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "start the stack:", err)
		return 1
	}
	defer stack.Stop()
	defer temporal.Close()
	code := m.Run()
	if err := env.RecordHistories(ctx, temporal); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	if code == 0 && flag.Lookup("test.run").Value.String() == "" {
		code = checkRights(ctx)
	}
	return code
}

func start(ctx context.Context) (err error) {
	stack, err = env.Start(ctx, env.Options{
		Progress: os.Stdout, Holdfast: true, Drills: true, Audit: true,
		Kubelet: &kubelet.Options{Images: map[string]kubelet.Image{
			running:  {Run: func(ctx context.Context, _ kubelet.ImageCall) int { <-ctx.Done(); return 0 }},
			checking: {Run: check},
		}},
		VeleroArgs: []string{"--concurrent-backups=8"},
	})
	if err != nil {
		return err
	}
	if admin, err = stack.UserClient(env.Admin); err != nil {
		return err
	}
	if temporal, err = temporalclient.Dial(temporalclient.Options{HostPort: stack.TemporalAddress(), Logger: env.QuietLogger()}); err != nil {
		return err
	}
	return admin.Create(ctx, &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: env.OADPNamespace, Name: policy.ConfigMapName},
		Data:       map[string]string{policy.ConfigMapOwnKey: allowing("")},
	})
}

// checkRights looks for rights of the drills' worker that are missing or superfluous. It returns the exit status.
func checkRights(ctx context.Context) int {
	wrong, err := stack.CheckRights(ctx, func(right env.Right) bool {
		if right.Verb == "bind" { // no request has this verb: the API server checks it when a RoleBinding is created
			return false
		}
		return right.User == env.HoldfastDrills || (right.User == env.HoldfastWorker && strings.HasPrefix(right.Resource, "restoredrills"))
	})
	if err != nil {
		fmt.Fprintln(os.Stderr, "check the rights:", err)
		return 1
	}
	for _, text := range wrong {
		fmt.Fprintln(os.Stderr, text)
	}
	return min(len(wrong), 1)
}
