package production_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"regexp"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"holdfast.dev/holdfast/test/env"
)

// Temporal wants a client certificate. All certificates run out: readiness says so, and nothing is lost. They are renewed in their
// files, and no process is restarted.
func TestCertificatesRunOutAndAreRenewed(t *testing.T) {
	needsPostgres(t)
	stack, err := env.Start(t.Context(), env.Options{
		Progress: os.Stdout, Holdfast: true, TemporalServer: true, TemporalCertificates: time.Hour,
	})
	require.NoError(t, err)
	t.Cleanup(stack.Stop)
	r := newRig(t, stack, "renewed")
	r.BackUp("before", "")
	r.AwaitEnd("before")
	require.NoError(t, stack.RenewTemporalCertificates(5*time.Second))
	worker := stack.Component(env.Worker)
	pid := worker.PID()

	expired := regexp.MustCompile("certificate has expired|expired certificate")
	for _, process := range []string{env.Worker, env.Watcher} {
		r.Await(func(ctx context.Context) error {
			said, err := readiness(ctx, stack.Component(process))
			if err == nil && !expired.MatchString(said) {
				err = fmt.Errorf("%s says nothing of an expired certificate: %s", process, said)
			}
			return err
		})
	}
	r.BackUp("meanwhile", "")
	require.NoError(t, stack.RenewTemporalCertificates(time.Hour))
	r.AwaitEnd("meanwhile")
	r.remove("before")
	assert.Len(t, r.Made()["meanwhile"], 1)
	assert.Equal(t, pid, worker.PID(), "no process was restarted")
}

// readiness is what a process says of itself.
func readiness(ctx context.Context, process *env.Process) (string, error) {
	address := "http://" + process.Address(env.AddressHealth) + "/readyz"
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return "", err
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return "", err
	}
	defer answer.Body.Close()
	said, err := io.ReadAll(answer.Body)
	return string(said), err
}
