// Package process is what every Holdfast process is made of: flags with their environment variables, a logger, the health and
// metrics servers, and an end by signals.
//
// worker and starter call it. It imports, of ours, only k8s/probe.
package process
