// Package probe checks again and again that the systems which a process depends on are available, and answers the kubelet's
// probes: alive while the process works, ready while every check passes.
//
// worker, starter and k8s/process call it.
package probe
