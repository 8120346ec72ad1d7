// Package kubelet is the stand-in of the kubelet and the scheduler: one node, whose containers are processes of this machine. It
// runs in the test's process; test/env starts it for a stack.
package kubelet
