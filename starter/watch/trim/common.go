package trim

import "sync"

// maxCommon bounds the texts of parts that are kept for others, since tenants may choose them. With more, all are forgotten.
const maxCommon = 1000

// Common are parts of kept objects that are equal if one text in them is: those of nearly all settled objects. What a cache holds
// is read-only, so that many objects can have the same part.
type Common[T any] struct {
	part  func(text string) *T
	mutex sync.Mutex
	known map[string]*T
}

// NewCommon has parts made of their texts.
func NewCommon[T any](part func(text string) *T) *Common[T] {
	return &Common[T]{part: part, known: map[string]*T{}}
}

// Of returns the part of a text, which must not be changed.
func (c *Common[T]) Of(text string) *T {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	part := c.known[text]
	if part == nil {
		if len(c.known) == maxCommon {
			clear(c.known)
		}
		part = c.part(text)
		c.known[text] = part
	}
	return part
}
