package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"
)

// registered registers an instrument with controller-runtime's registry.
func registered[Instrument prometheus.Collector](made Instrument) Instrument {
	ctrlmetrics.Registry.MustRegister(made)
	return made
}

func newCounter(name, help string, labels ...string) *prometheus.CounterVec {
	return prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
}

func newGauge(name, help string, labels ...string) *prometheus.GaugeVec {
	return prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: name, Help: help}, labels)
}

func newHistogram(name, help string, buckets []float64, labels ...string) *prometheus.HistogramVec {
	return prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: name, Help: help, Buckets: buckets}, labels)
}

// longBuckets serve what takes between a tenth of a second and a day.
var longBuckets = []float64{
	0.1, 0.25, 0.5, 1, 2.5, 5, 10, 15, 30, 60, 120, 300, 600, 1800, 3600, 7200, 14400, 28800, 86400,
}

func observeSince(histogram prometheus.Observer, from time.Time) {
	observe(histogram, time.Since(from))
}

func observe(histogram prometheus.Observer, took time.Duration) {
	histogram.Observe(max(0, took.Seconds()))
}

func number(yes bool) float64 {
	if yes {
		return 1
	}
	return 0
}

// described are the gauges of the census.
var described []*prometheus.Desc

// describe returns a gauge of the census.
func describe(name, help string, labels ...string) *prometheus.Desc {
	made := prometheus.NewDesc(name, help, labels, nil)
	described = append(described, made)
	return made
}

// gauges are what a census has counted, for one scrape.
type gauges chan<- prometheus.Metric

func (g gauges) set(of *prometheus.Desc, value float64, labels ...string) {
	g <- prometheus.MustNewConstMetric(of, prometheus.GaugeValue, value, labels...)
}

// setTime leaves out a zero time.
func (g gauges) setTime(of *prometheus.Desc, at time.Time, labels ...string) {
	if !at.IsZero() {
		g.set(of, float64(at.Unix()), labels...)
	}
}
