// Package probe keeps asking the systems that a process depends on whether they are there, and answers the kubelet's probes
// with the truth: alive while the process turns, ready while every check passes.
//
// worker, starter and k8s/process call it. It imports, of ours, only k8s/metrics.
package probe
