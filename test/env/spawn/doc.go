// Package spawn starts the children of a test: each in a process group of its own, to end whole, and none outlives the test,
// however that ends. Packages test/env and test/env/kubelet call it; tests show the ends of logs by it.
package spawn
