// Package turns gives turns to members, in the same way for all coordinators.
//
// Queue is the order and the limit: a state machine over plain values; times are arguments. Coordinator is the workflow around
// it; User says what a turn is. Loop is for every run that serves requests for as long as somebody needs it.
//
// Its law: there are never more turns than the limit. No waiting member is lost, and none has two turns. Turns go round the
// namespaces by their weights: however much one namespace asks for, another waits for one round at most. What is shown is the
// order in which turns begin. What operators and objects say counts more than what was carried: a lost coordinator is refilled
// from them.
//
// It knows no kind. Workflows use it.
package turns
