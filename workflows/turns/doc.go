// Package turns is how a coordinator gives turns to its members, once for all coordinators.
//
// Queue is the order and the limit: a state machine over plain values, to which times are passed in. Coordinator is the loop of
// the workflow around it. What a turn is, how it begins and how it ends is the user's to say, see User.
//
// Its law: never more turns than the limit; nobody who waits is lost, and nobody has two turns; turns go round the namespaces by
// their weights, so that however much one asks for, another waits for one round at most; and what is shown is the order by which
// turns begin. What people and objects say counts, whatever was carried over: a coordinator that was lost is refilled from them.
//
// It knows no kind, and imports workflows/contract, workflows/call and Temporal's SDK. Workflows use it.
package turns
