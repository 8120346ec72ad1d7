// Package connect connects a process to Temporal: the client, from the environment that Temporal's own tools read
// (TEMPORAL_ADDRESS, TEMPORAL_NAMESPACE, TLS, API key), and what must hold before anything polls or signals: the search
// attributes are there, and no other Kubernetes cluster uses the cluster ID. It knows how the workflows of each kind are started,
// signalled and queried, and how a Schedule is kept.
//
// worker, starter, starter/watch and activities call it. It is no workflow code.
package connect
