// Package k8s holds what all code shares that reads and writes Kubernetes objects: the scheme, REST configuration and mapper,
// patches that cannot overwrite another writer's changes, and the guard against a second controller. Each package below it
// covers one subject.
//
// Everything but the workflows may call it. It imports, of ours, only k8s/api. The packages below it, except k8s/watch, import
// only k8s and workflows/contract.
package k8s
