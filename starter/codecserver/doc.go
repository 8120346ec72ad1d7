// Package codecserver is `holdfast codec-server`: it decrypts payloads for people who look at workflows in Temporal's Web UI
// or command line, and lets in whoever has its token.
//
// starter calls it. It imports, of ours, workflows/codec, k8s/process and k8s/probe.
package codecserver
