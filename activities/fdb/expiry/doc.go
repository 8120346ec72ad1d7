// Package expiry acts for turns of the queue of expirations: Activities plan a turn and make, observe and delete its pods;
// Coordination carries what turns and queue tell each other and starts the turns. It lists what the objects want of a queue
// that was lost.
//
// The worker registers both, for workflows/fdb/expiry and workflows/fdb/queue. It imports, of ours, activities and others
// below activities/fdb, k8s and workflows/contract.
package expiry
