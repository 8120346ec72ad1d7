package verdict

import "fmt"

// Count is a number of things for people: "1 range", "2 ranges".
func Count(number int64, one string) string {
	if number == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %ss", number, one)
}

// Took is a number of seconds that something took, for people.
func Took(seconds int64) string {
	if seconds == 0 {
		return "less than a second"
	}
	return Count(seconds, "second")
}
