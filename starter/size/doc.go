// Package size is `holdfast size`: what a fleet of a given size needs, and which of its limits it comes near.
//
// The command in package main calls it. It calls neither a cluster nor Temporal: an Estimate is a Load times what one backup, one
// deletion and one plan's run were measured to need (docs/capacity.md). A test compares it with measurements that are not in the
// model. It imports, of ours, starter/operator and starter/size/simulate.
package size
