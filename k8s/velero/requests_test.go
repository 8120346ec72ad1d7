package velero_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"holdfast.dev/holdfast/k8s/velero"
)

func TestTheNumberOfARequestIsReadFromItsName(t *testing.T) {
	tests := map[string]struct {
		name string
		want int
	}{
		"the first":                        {"b-1", 1},
		"a later one":                      {"b-12", 12},
		"zero":                             {"b-0", 0},
		"a negative number":                {"b--1", 0},
		"a number and more":                {"b-1-2", 0},
		"a random suffix":                  {"b-x7k2p", 0},
		"no suffix":                        {"b-", 0},
		"the backup's own name":            {"b", 0},
		"another backup's":                 {"c-1", 0},
		"of a backup whose name is longer": {"bb-1", 0},
		"more than a number can hold":      {"b-99999999999999999999", 0},
	}
	for title, test := range tests {
		t.Run(title, func(t *testing.T) { assert.Equal(t, test.want, velero.RequestAttempt("b", test.name)) })
	}
}
