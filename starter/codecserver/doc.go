// Package codecserver is `holdfast codec-server`: it decrypts payloads for users of Temporal's Web UI, after they have entered a
// token.
//
// The command in package main lists what it offers.
package codecserver
