// Package operator holds what the commands for people share: their flags and clients, tables of many objects, sheets of one,
// and what is asked of a workflow: of that of an object, or of a coordinator, which people can also change by Updates.
//
// Packages velero, location, queue and fdb use it, and the command in package main. It reads with the rights of the person who
// runs the command, and writes nothing in Kubernetes.
package operator
