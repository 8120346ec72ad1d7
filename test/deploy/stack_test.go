package deploy_test

import (
	"context"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"

	"holdfast.dev/holdfast/test/env"
	"holdfast.dev/holdfast/test/env/kubelet"
	"holdfast.dev/holdfast/test/fdbsim"
	"holdfast.dev/holdfast/test/tools"
)

// binaries are this checkout's programs.
var binaries = sync.OnceValues(func() (map[string]string, error) { return tools.BuildHoldfast(context.Background(), nil) })

// judge is a control plane with Holdfast's kinds, roles and admission policies, a node with the stand-in of FoundationDB's tools, and
// nothing that acts. The tests of what it takes and refuses share it.
type judge struct {
	dir   string
	stack *env.Env
	sim   *fdbsim.Sim
}

var (
	judges  = sync.OnceValues(startJudge)
	started *judge
)

func TestMain(m *testing.M) {
	ctrllog.SetLogger(logr.Discard())
	code := m.Run()
	if started != nil {
		started.stop()
	}
	os.Exit(code)
}

func theJudge(t *testing.T) *judge {
	t.Helper()
	if testing.Short() {
		t.Skip("starts real components")
	}
	j, err := judges()
	require.NoError(t, err)
	j.stack.ReportFailure(t)
	return j
}

func startJudge() (*judge, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Minute) // the first build is in it
	defer cancel()
	j := &judge{}
	if err := j.start(ctx); err != nil {
		j.stop()
		return nil, err
	}
	started = j
	return j, nil
}

func (j *judge) start(ctx context.Context) (err error) {
	if j.dir, err = os.MkdirTemp("", "holdfast-deploy-"); err != nil {
		return err
	}
	bin := filepath.Join(j.dir, "bin")
	if j.sim, err = fdbsim.Install(bin, filepath.Join(j.dir, "state"), "7.3", "7.4"); err != nil {
		return err
	}
	j.stack, err = env.Start(ctx, env.Options{
		FoundationDB: true, Drills: true, Without: []string{env.Velero, env.S3, env.Temporal}, Kubelet: &kubelet.Options{Resolve: kubelet.FDBImages(bin)},
	})
	if err != nil {
		return err
	}
	return j.stack.Client().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: fdbNamespace}})
}

func (j *judge) stop() {
	if j.stack != nil {
		j.stack.Stop()
	}
	_ = os.RemoveAll(j.dir)
}
