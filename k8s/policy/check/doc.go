// Package check holds the checks that are common to the specs of tenants: enforced values, excluded resources, reserved
// ConfigMaps, restricted keys, sizes, and the error that carries a verdict.
//
// Packages policy, backupspec, restorespec and locationspec call it, and activities that judge. It reads nothing.
package check
