// Package fleet is `holdfast fleet`: all Kubernetes clusters that share a Temporal namespace, as their heartbeats show them.
// It reads Temporal alone, and so works while clusters are away.
//
// Package starter adds the command. It imports, of ours, starter/operator, workflows/connect and workflows/contract.
package fleet
