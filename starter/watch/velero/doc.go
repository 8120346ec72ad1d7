// Package velero knows the kinds that Velero serves: which events concern each, how it is gathered, when it is settled, and how
// it is counted.
//
// It makes values of controllers.Kind, which package watch runs. It knows nothing of FoundationDB.
package velero
