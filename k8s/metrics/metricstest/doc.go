// Package metricstest reads the metrics of the test's own process, as a scraper would.
//
// Only tests import it.
package metricstest
