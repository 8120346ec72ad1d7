// Package codecserver is `holdfast codec-server`: it decrypts payloads for users of Temporal's Web UI, after they have entered a
// token.
//
// The command in package main lists what it offers. It imports, of ours, workflows/codec, k8s/process and k8s/probe.
package codecserver
