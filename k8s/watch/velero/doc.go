// Package velero knows the kinds that Velero serves: which events concern each, how it is gathered, when it is settled, and how
// it is counted.
//
// It makes values of watched.Kind, which package watch runs. It knows nothing of FoundationDB. It imports, of ours, packages
// watched, caches, signal and trim, of activities those that gather and judge these kinds, of workflows their Settled, and k8s.
package velero
