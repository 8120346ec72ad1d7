// Package operator holds what the commands for people share: their flags and clients, tables of many objects, sheets of one,
// and what is asked of a workflow.
//
// Packages velero, location and fdb use it, and the command in package main. It reads with the rights of the person who runs
// the command, and writes nothing. It imports, of ours, k8s, k8s/process, workflows/codec, workflows/connect and
// workflows/contract.
package operator
