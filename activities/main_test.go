package activities_test

import (
	"os"
	"testing"

	"holdfast.dev/holdfast/activities/fdbtool/cage"
	"holdfast.dev/holdfast/k8s/metrics"
)

func TestMain(m *testing.M) {
	cage.Main() // the tools begin as this program
	metrics.RegisterFDB()
	os.Exit(m.Run())
}
