// Package simulate follows the runs of one day through queues in simulated time: discrete events.
//
// starter/size describes a fleet as stations with servers, and the visits that each run pays them. The package knows neither
// Kubernetes nor Temporal, and imports nothing of ours. The same System gives the same Result.
package simulate
