package k8s

import (
	"testing"

	"github.com/stretchr/testify/assert"
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

func TestWhichObjectsAreJustRestored(t *testing.T) {
	for title, test := range map[string]struct {
		restored bool
		recorded types.UID
		want     bool
	}{
		"made by hand, not served yet":            {false, "", false},
		"made by hand, served":                    {false, "own", false},
		"restored, not served yet":                {true, "", true},
		"restored with its status":                {true, "old", true},
		"restored with its status, without label": {false, "old", true},
		"restored, served since":                  {true, "own", false},
	} {
		object := &metav1.ObjectMeta{UID: "own"}
		if test.restored {
			object.Labels = map[string]string{velerov1.RestoreNameLabel: "again"}
		}
		assert.Equal(t, test.want, JustRestored(object, test.recorded), title)
	}
}
