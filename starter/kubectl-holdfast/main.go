// Kubectl-holdfast is the plugin `kubectl holdfast`, with which tenants back up and restore their own namespaces.
package main

import (
	"os"

	_ "k8s.io/client-go/plugin/pkg/client/auth" // as kubectl's, for kubeconfigs that name one

	"holdfast.dev/holdfast/starter/tenant"
)

func main() { os.Exit(int(tenant.Main())) }
