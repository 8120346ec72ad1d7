// Package kinds says how a kind of workflows is run: its contract.Kind, activities, function, and registration.
//
// Each package of a kind makes one value of Kind, for one that serves objects by Of from its entity.Kind; package workflows lists
// them.
package kinds
