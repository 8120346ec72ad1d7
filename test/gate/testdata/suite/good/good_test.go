package good

import "testing"

func TestGood(t *testing.T) {
	t.Run("case", func(t *testing.T) { t.Log("warning: too long") })
}

func TestSkipped(t *testing.T) { t.Skip("here") }
