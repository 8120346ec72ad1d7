// Package report is `holdfast report`: how the namespaces of a cluster were protected over a time, for administrators and
// auditors.
//
// The command in package main calls it. It reads objects with the rights of the person who runs the command, and writes nothing.
package report
