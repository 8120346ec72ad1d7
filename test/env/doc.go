// Package env starts the whole stack that Holdfast needs, as real processes on loopback: etcd, kube-apiserver,
// kube-controller-manager, Temporal with its Web UI, an S3 server, Velero with its AWS plugin, and, when asked,
// holdfast-worker and the watcher. The end-to-end tests, the benchmark, "make demo" and "make dev" all use it.
//
// Start builds what is missing (package test/tools), starts the components as far as possible at the same time and returns
// when everything answers. Each component is a Process that a test can pause, kill, stop and start again under the same
// address: outages are tests. Stop, the end of the calling process and its sudden death all take the components with them.
// Pods run when Options.Kubelet asks for it: a stand-in for the kubelet runs their containers as processes of this machine.
// Several stacks can run on a machine at a time.
package env
