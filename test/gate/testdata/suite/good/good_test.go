package good

import "testing"

func TestGood(t *testing.T) { t.Run("case", func(*testing.T) {}) }

func TestSkipped(t *testing.T) { t.Skip("here") }
