// Package connect connects a process to Temporal: the client, from the environment that Temporal's own tools read
// (TEMPORAL_ADDRESS, TEMPORAL_NAMESPACE, TLS, API key), and the search attributes that must be there before anything polls or
// signals. It knows how the workflows of each kind are started, signalled and queried, and how a Schedule is kept.
//
// worker, starter, starter/watch and activities call it. It is no workflow code.
package connect
