// Package kstatus writes the conditions by which tools judge an object whose kind they do not know: kubectl wait, and Flux, Helm
// and others that use the library kstatus (sigs.k8s.io/cli-utils). Without them such a tool calls each object ready that exists.
//
//   - Reconciling is present, and True, while the object becomes what its spec says, or waits for somebody.
//   - Stalled is present, and True, while it does not become that unless somebody acts.
//   - Complete, of what ends, is True once it has ended well. Ready, of what is kept in a state, is True while it is in it.
//   - status.observedGeneration is the generation that the other conditions are about. An installation of OADP drops that field;
//     each condition has its own, too.
//
// The conditions follow from the status alone. Activities call it with each status that they write. It changes objects in memory
// and does no I/O.
package kstatus
