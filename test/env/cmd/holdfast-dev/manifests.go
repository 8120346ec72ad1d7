package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"holdfast.dev/holdfast/test/env"
	"holdfast.dev/holdfast/test/env/kubelet"
)

// tenantObjects is a small application: what a tenant has to lose.
const tenantObjects = `apiVersion: v1
kind: ConfigMap
metadata: {name: settings, namespace: %[1]s, labels: {app: web}}
data: {greeting: "hello", retries: "3"}
---
apiVersion: v1
kind: Secret
metadata: {name: login, namespace: %[1]s, labels: {app: web}}
stringData: {user: demo, password: not-a-real-one}
---
apiVersion: v1
kind: Service
metadata: {name: web, namespace: %[1]s, labels: {app: web}}
spec:
  selector: {app: web}
  ports: [{port: 80}]
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: %[1]s, labels: {app: web}}
spec:
  replicas: 1
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      securityContext: {runAsNonRoot: true, runAsUser: 1000, seccompProfile: {type: RuntimeDefault}}
      containers:
      - name: web
        image: web
        securityContext: {allowPrivilegeEscalation: false, capabilities: {drop: [ALL]}}
`

// tenantImages are what the tenant's containers run.
var tenantImages = map[string]kubelet.Image{
	"web": {Run: func(ctx context.Context, _ kubelet.ImageCall) int { <-ctx.Done(); return 0 }},
}

// nonAdminBackup asks for the objects of the tenant's namespace. There are no volumes on this machine.
const nonAdminBackup = `apiVersion: oadp.openshift.io/v1alpha1
kind: NonAdminBackup
metadata: {name: %[2]s, namespace: %[1]s}
spec:
  backupSpec:
    snapshotVolumes: false
    defaultVolumesToFsBackup: false
`

// backupIntoLocation is nonAdminBackup into a storage location of the tenant's own.
const backupIntoLocation = nonAdminBackup + `    storageLocation: %[3]s
`

// nonAdminRestore asks for all that a NonAdminBackup holds.
const nonAdminRestore = `apiVersion: oadp.openshift.io/v1alpha1
kind: NonAdminRestore
metadata: {name: %[2]s, namespace: %[1]s}
spec:
  restoreSpec:
    backupName: %[3]s
`

// approvalPolicy has tenants' storage locations wait for an administrator's approval.
const approvalPolicy = `apiVersion: v1
kind: ConfigMap
metadata: {name: holdfast-policy, namespace: %[1]s}
data:
  nonAdmin: |
    requireApprovalForBSL: true
`

// ownLocation is a bucket of the tenant's, reached with the key "cloud" of a Secret of its namespace.
const ownLocation = `apiVersion: oadp.openshift.io/v1alpha1
kind: NonAdminBackupStorageLocation
metadata: {name: %[2]s, namespace: %[1]s}
spec:
  backupStorageLocationSpec:
    provider: aws
    objectStorage: {bucket: %[3]s}
    credential: {name: %[4]s, key: cloud}
    config: {region: %[5]s, s3Url: "%[6]s", s3ForcePathStyle: "true"}
`

// writeManifest writes a manifest into the stack's folder and returns its path.
func writeManifest(stack *env.Env, file, format string, args ...any) (string, error) {
	path := filepath.Join(stack.Dir(), file)
	if err := os.WriteFile(path, fmt.Appendf(nil, format, args...), 0o644); err != nil { //nolint:gosec // an example
		return "", fmt.Errorf("write the manifest %s: %w", file, err)
	}
	return path, nil
}
