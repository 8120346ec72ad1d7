// Package progress knows how far a backup, restore, deletion, download or a plan's run is, follows it until it is over, and shows
// it to a person: as a bar on a terminal, as lines elsewhere.
//
// Command kubectl-holdfast calls it with a tenant's rights. It only reads.
package progress
