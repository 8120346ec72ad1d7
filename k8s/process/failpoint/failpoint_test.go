package failpoint

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"holdfast.dev/holdfast/workflows/contract"
)

func TestWhatOneActivityDoesIsToldApart(t *testing.T) {
	at := time.Date(2026, 8, 1, 12, 0, 0, 0, time.UTC)
	second := contract.FinalizationRecord{Tasks: []contract.RecordedTask{
		{Name: "volumes", StartedAt: at, EndedAt: at}, {Name: "cleanup", StartedAt: at}, {Name: "validation"},
	}}
	last := contract.FinalizationRecord{EndedAt: at, Tasks: []contract.RecordedTask{{Name: "volumes", StartedAt: at, EndedAt: at}}}
	for title, test := range map[string]struct {
		arg  any
		want string
	}{
		"a task":                  {contract.FinalizationTaskStep{Task: "cleanup"}, "cleanup"},
		"the record as it begins": {second, "cleanup"},
		"the last record":         {last, TheEnd},
		"a command":               {contract.FDBCommand{Operation: contract.FDBStart}, "start"},
		"a condition":             {contract.FDBSlotRequest{Action: contract.FDBSlotRelease}, "release"},
		"asking for a command":    {contract.FDBCommandRequest{Command: &contract.FDBCommand{Operation: contract.FDBAbort}}, "abort"},
		"leaving":                 {contract.FDBCommandRequest{Leave: true}, "leave"},
		"telling":                 {contract.FDBCommandRequest{}, ""},
		"any other activity":      {contract.RestoreStep{}, ""},
	} {
		t.Run(title, func(t *testing.T) { assert.Equal(t, test.want, of([]any{test.arg})) })
	}
}

func TestAPointInWords(t *testing.T) {
	assert.Equal(t, "before regular run volumes", Point{Step: "run", Form: Regular, Of: "volumes"}.String())
	assert.Equal(t, "after local refresh", Point{Step: "refresh", Form: Local, After: true}.String())
	assert.Equal(t, "before signal", Point{Step: Signal}.String())
}
