package expiry_test

import (
	"os"
	"testing"

	"holdfast.dev/holdfast/k8s/metrics"
)

func TestMain(m *testing.M) {
	metrics.RegisterFDB()
	os.Exit(m.Run())
}
