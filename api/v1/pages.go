package v1

import "iter"

// A List is one page. Next is where the next page begins; it is empty on the last.
type List[T any] struct {
	Items []T    `json:"items"`
	Next  string `json:"next,omitempty"`
}

// pages yields the items of all pages, beginning after a position. It ends after the first
// error.
func pages[T any](after string, read func(after string) (List[T], error)) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		for {
			page, err := read(after)
			if err != nil {
				var none T
				yield(none, err)
				return
			}
			for _, item := range page.Items {
				if !yield(item, nil) {
					return
				}
			}
			if after = page.Next; after == "" {
				return
			}
		}
	}
}
