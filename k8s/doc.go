// Package k8s holds what all code shares that reads and writes Kubernetes objects: the scheme, REST configuration and mapper,
// patches that cannot overwrite another writer's changes, the guard against a second controller, and what identifies a cluster.
// Each package below it covers one subject.
//
// Everything but the workflows may call it.
package k8s
