// Package velero knows the kinds that Velero serves: of each, which events concern it, what there is of it, when it is settled,
// and how it is counted.
//
// It makes values of watched.Kind, which package watch runs. It knows nothing of FoundationDB. It imports packages watched,
// caches, signal and trim, and of k8s the packages that gather and judge these kinds.
package velero
