package hangs

import "testing"

func TestHangs(*testing.T) { select {} }
