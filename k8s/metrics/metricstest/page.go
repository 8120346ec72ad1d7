package metricstest

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	dto "github.com/prometheus/client_model/go"
	"github.com/stretchr/testify/require"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"
)

// Value returns the present value of a series of this process, written as on the page: name, or name{label="value",...}
// with the labels in alphabetical order. Of a histogram it is the number of observations. A series that is not there is 0.
func Value(t testing.TB, series string) float64 {
	t.Helper()
	found := find(t, series)
	return found.GetGauge().GetValue() + found.GetCounter().GetValue() + float64(found.GetHistogram().GetSampleCount())
}

// Sum returns the sum of all observations of a histogram, named as for Value.
func Sum(t testing.TB, series string) float64 {
	t.Helper()
	return find(t, series).GetHistogram().GetSampleSum()
}

// Counted returns by how much a series grows while do runs. The series is named as for Value.
func Counted(t testing.TB, series string, do func()) float64 {
	t.Helper()
	before := Value(t, series)
	do()
	return Value(t, series) - before
}

// find returns nil, whose getters return zero, if there is no such series.
func find(t testing.TB, series string) *dto.Metric {
	t.Helper()
	families, err := ctrlmetrics.Registry.Gather()
	require.NoError(t, err)
	name, _, _ := strings.Cut(series, "{")
	for _, family := range families {
		if family.GetName() != name {
			continue
		}
		for _, metric := range family.GetMetric() {
			if name+labels(metric) == series {
				return metric
			}
		}
	}
	return nil
}

func labels(metric *dto.Metric) string {
	if len(metric.GetLabel()) == 0 {
		return ""
	}
	var pairs []string
	for _, label := range metric.GetLabel() {
		pairs = append(pairs, fmt.Sprintf("%s=%q", label.GetName(), label.GetValue()))
	}
	slices.Sort(pairs)
	return "{" + strings.Join(pairs, ",") + "}"
}
