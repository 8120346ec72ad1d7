// Package k8s is what is common to all that reads and writes Kubernetes objects: the scheme, REST configuration and mapper,
// patches that cannot overwrite what somebody else wrote, and the guard against a second controller. Each package below it
// knows one subject.
//
// Everything but the workflows may call it. It imports, of ours, only k8s/api. Those below it, but for k8s/watch, import only
// k8s and workflows/contract.
package k8s
