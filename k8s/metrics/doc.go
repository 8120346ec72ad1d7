// Package metrics holds Holdfast's own Prometheus instruments; docs/monitoring.md lists them. They are registered with
// controller-runtime's registry when the process starts, and served on one page with those of client-go and Temporal's SDK. No
// label carries a tenant's name, so the number of series does not grow with the number of objects. The one exception is the URL
// of data that were left behind.
//
// Times are seconds. Kubernetes stores times without fractions: a duration measured from one may be up to a second too long,
// and is never negative. A kill between a write and its count loses the count; nothing is counted twice for one write.
//
// Activities, the watcher and both processes call it.
package metrics
