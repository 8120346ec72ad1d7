package drill

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"holdfast.dev/holdfast/workflows/contract"
)

type view = contract.DrillView

// What next says for a drill that waits, and what stands for a drill that is settled, about which it is not asked.
var wait, settled = activity{}, activity{Name: "settled"}

func TestADrillGoesThroughItsSteps(t *testing.T) {
	finished := contract.VeleroDrillView{Exists: true, Begun: true, Finished: true, Restored: true}
	atWork := contract.VeleroDrillView{Exists: true, Begun: true}
	for title, test := range map[string]struct {
		view view
		want activity
	}{
		"a new one":                         {view{Found: true}, contract.AdmitDrill},
		"one that is refused":               {view{Found: true, Concluded: true, Ended: true}, settled},
		"admitted":                          {view{Found: true, Admitted: true}, stepPrepare},
		"all places are taken":              {view{Found: true, Admitted: true, Full: true}, wait},
		"no worker makes it":                {view{Found: true, Admitted: true, Unserved: true}, wait},
		"no worker deletes it":              {view{NamespaceExists: true, Unserved: true}, wait},
		"somebody deletes its namespace":    {view{Found: true, Admitted: true, Prepared: true, NamespaceExists: true, NamespaceTerminating: true}, wait},
		"killed before the status says so":  {view{Found: true, Admitted: true, NamespaceExists: true, Velero: contract.VeleroDrillView{Exists: true}}, contract.StartDrillRestore},
		"the name is taken":                 {view{Found: true, Admitted: true, Occupied: true}, contract.ConcludeDrill},
		"its namespace is there":            {view{Found: true, Admitted: true, Prepared: true, NamespaceExists: true}, contract.StartDrillRestore},
		"it waits for its turn":             {view{Found: true, Admitted: true, Prepared: true, NamespaceExists: true, AwaitsTurn: true, StartTried: true}, wait},
		"it has its turn":                   {view{Found: true, Admitted: true, Prepared: true, NamespaceExists: true, AwaitsTurn: true}, contract.StartDrillRestore},
		"its namespace has gone again":      {view{Found: true, Admitted: true, Prepared: true}, stepPrepare},
		"not in this run":                   {view{Found: true, Admitted: true, NamespaceExists: true}, stepPrepare},
		"Velero restores":                   {view{Found: true, Admitted: true, NamespaceExists: true, Velero: atWork}, wait},
		"Velero takes too long":             {view{Found: true, Admitted: true, NamespaceExists: true, Velero: atWork, Late: true}, contract.ConcludeDrill},
		"a check is due":                    {view{Found: true, Admitted: true, NamespaceExists: true, Velero: finished, Check: "objects"}, contract.CheckDrill},
		"a check is due, late":              {view{Found: true, Admitted: true, NamespaceExists: true, Velero: finished, Check: "objects", Late: true}, contract.CheckDrill},
		"all checks are made":               {view{Found: true, Admitted: true, NamespaceExists: true, Velero: finished}, contract.ConcludeDrill},
		"Velero has failed":                 {view{Found: true, Admitted: true, NamespaceExists: true, Check: "objects", Velero: contract.VeleroDrillView{Exists: true, Begun: true, Finished: true}}, contract.ConcludeDrill},
		"the Restore was deleted":           {view{Found: true, Admitted: true, NamespaceExists: true, Check: "objects", Velero: contract.VeleroDrillView{Begun: true}}, contract.ConcludeDrill},
		"older ones come first":             {view{Found: true, Admitted: true, Ahead: 2, Oldest: "a"}, wait},
		"it could not be started in time":   {view{Found: true, Admitted: true, Prepared: true, NamespaceExists: true, Late: true}, contract.ConcludeDrill},
		"a check was given up":              {view{Found: true, Admitted: true, NamespaceExists: true, Velero: finished, Check: "objects", GivenUp: true}, contract.ConcludeDrill},
		"it has grown too large":            {view{Found: true, Admitted: true, NamespaceExists: true, Velero: finished, Oversized: true}, stepRemoveNamespace},
		"too large, with nothing left":      {view{Found: true, Admitted: true, Velero: contract.VeleroDrillView{Begun: true}, Oversized: true}, contract.ConcludeDrill},
		"no status can be written":          {view{Found: true, Oversized: true, Unwritable: true}, settled},
		"it is kept":                        {view{Found: true, Admitted: true, NamespaceExists: true, Velero: finished, Concluded: true, Kept: true}, wait},
		"it has its verdict":                {view{Found: true, Admitted: true, NamespaceExists: true, Velero: finished, Concluded: true}, stepRemoveNamespace},
		"Velero is still at it":             {view{Found: true, Admitted: true, NamespaceExists: true, Velero: atWork, Concluded: true}, wait},
		"the namespace goes":                {view{Found: true, Admitted: true, NamespaceExists: true, NamespaceTerminating: true, Velero: finished, Concluded: true}, wait},
		"the namespace is gone":             {view{Found: true, Admitted: true, Velero: finished, Concluded: true}, contract.RemoveDrillRestore},
		"the Restore goes":                  {view{Found: true, Admitted: true, Velero: contract.VeleroDrillView{Exists: true, Finished: true, BeingDeleted: true}, Concluded: true}, wait},
		"nothing is left":                   {view{Found: true, Admitted: true, Concluded: true}, contract.EndDrill},
		"it is over":                        {view{Found: true, Admitted: true, Concluded: true, Ended: true}, settled},
		"something came back":               {view{Found: true, Concluded: true, Ended: true, NamespaceExists: true}, stepRemoveNamespace},
		"it is deleted before it began":     {view{Found: true, BeingDeleted: true}, settled},
		"it is gone, with a namespace":      {view{NamespaceExists: true, Velero: finished}, stepRemoveNamespace},
		"it is gone, while Velero restores": {view{NamespaceExists: true, Velero: atWork}, wait},
		"it is gone":                        {view{}, settled},
	} {
		t.Run(title, func(t *testing.T) {
			assert.Equal(t, test.want == settled, Settled(test.view))
			if test.want != settled {
				assert.Equal(t, test.want, next(test.view))
			}
			if test.want == wait {
				assert.NotEmpty(t, awaited(test.view))
			}
		})
	}
}
