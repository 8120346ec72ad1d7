package fails

import "testing"

func TestAlwaysFails(t *testing.T) {
	t.Run("a case", func(*testing.T) {})
	t.Run("another case (of two)", func(t *testing.T) { t.Error("as always") })
}
