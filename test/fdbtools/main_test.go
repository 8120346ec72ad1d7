package fdbtools_test

import (
	"os"
	"testing"

	"holdfast.dev/holdfast/activities/fdbtool/cage"
)

func TestMain(m *testing.M) {
	cage.Main() // the tools begin as this program
	os.Exit(m.Run())
}
