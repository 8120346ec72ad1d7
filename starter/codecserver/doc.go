// Package codecserver is `holdfast codec-server`: it decrypts payloads for people who look into Temporal's Web UI, and asks
// them for a token first.
//
// The command in package main lists what it offers. It imports, of ours, workflows/codec, k8s/process and k8s/probe.
package codecserver
