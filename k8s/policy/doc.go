// Package policy says what an administrator allows tenants to ask for: it reads the administrator's policy, judges a
// tenant's spec by it, and builds from that spec the one that Velero gets.
//
// Judging and building are pure but for the objects that a spec names, which are read through a client.Reader. A
// verdict on a spec is an *InvalidSpecError; every other error means that nothing could be judged and is worth a retry.
package policy
