// Package tenant is `kubectl holdfast`: the commands by which a tenant makes, follows, restores and deletes its own backups, and
// runs and pauses its plans.
//
// Everything is done with the rights and by the settings of kubectl. The commands create and patch the same objects as `kubectl`
// would: each can be left at any time, and the work goes on in the cluster. Command kubectl-holdfast calls it.
package tenant
